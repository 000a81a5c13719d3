"""The data behind a GraphQL schema, as managers of gm-chat."""

from gm_chat_source_graphql.options import ManagerOptions, Options
from gm_chat_source_graphql.source import GraphQLSource

__all__ = ["GraphQLSource", "ManagerOptions", "Options"]
