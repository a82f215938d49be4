"""The command line of gradlab: reads options, calls the library, prints results."""
