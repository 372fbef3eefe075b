package approvals

// IsDecided is isDecided, for tests: they end the time of a wait as they like.
var IsDecided = (*Desk).isDecided
