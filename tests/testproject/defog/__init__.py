"""Two business databases of a public text-to-SQL benchmark, as a team would put managers over them."""
