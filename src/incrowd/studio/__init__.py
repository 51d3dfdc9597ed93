"""The studio: plan, release and inspect in a browser. Everything is done by `incrowd.api`; here it is only shown."""
