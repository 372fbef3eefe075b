package door

// Held is how many bytes of bodies a door counts.
func Held(d *Door) int64 { return d.held.held() }
