package charge

import "fmt"

// Budget configures a token bucket. The zero Budget admits nothing.
type Budget struct {
	Rate Rate
	// Burst is how many tokens the bucket holds, and with how many it starts. There
	// is no default here: where the operator states none, pass Rate.Burst().
	Burst int
}

// String is for the operator: "5/s, burst 10".
func (b Budget) String() string { return fmt.Sprintf("%s, burst %d", b.Rate, b.Burst) }

// Valid reports whether a bucket can be made. Validate checks more, once; this guards
// each call against limits that were not validated.
func (b Budget) Valid() bool {
	return b.Rate.count > 0 && b.Rate.per > 0 && b.Burst >= 1 && b.Burst <= MaxCount
}
