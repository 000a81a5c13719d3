"""GeneralManager makes the models; Django makes tables only of an app that has this module."""
