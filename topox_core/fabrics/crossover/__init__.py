"""Over many delays and speeds: which fabric wins where, until when changing circuits pays, plans passed on to easier settings."""
