package charge

import "fmt"

// Budget configures a token bucket. The zero Budget admits nothing.
type Budget struct {
	Rate Rate `key:"rate"`
	// Burst is how many tokens the bucket holds, and with how many it starts. There
	// is no default here: where the operator states none, pass Rate.Burst().
	Burst int `key:"burst" of:"a burst" range:"1..1000000"`
}

// String is for the operator: "5/s, burst 10".
func (b Budget) String() string { return fmt.Sprintf("%s, burst %d", b.Rate, b.Burst) }

// Valid reports whether a bucket can be made. Validate checks more, once; this guards
// each call against limits that were not validated.
func (b Budget) Valid() bool {
	return b.Rate.count > 0 && b.Rate.per > 0 && b.Burst >= 1 && b.Burst <= MaxCount
}

// Covers reports whether a bucket of this budget never has fewer tokens than one of another that
// is charged for the same calls, and perhaps more: then it never refuses first.
func (b Budget) Covers(other Budget) bool {
	return b.Burst >= other.Burst && float64(b.Rate.count)/float64(b.Rate.per) >= float64(other.Rate.count)/float64(other.Rate.per)
}
