"""One module per family of requests; one table dispatches and advertises them."""
