package demo

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
)

// arguments are the members of the validated object, by their exact names. A
// struct would match names regardless of case.
type arguments map[string]json.RawMessage

// text returns a string argument, "" if it is absent. The operator's schema may have
// allowed other types.
func (a arguments) text(name string) (string, *refusal.Error) {
	raw, ok := a[name]
	if !ok {
		return "", nil
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", refuse.Failed("The argument \"" + name + "\" must be a string; correct it and call again.")
	}
	return *s, nil
}

// integer returns a whole number, clamped to what an int32 holds. 5.0 is whole,
// as it is in JSON Schema.
func (a arguments) integer(name string, otherwise int) (int, *refusal.Error) {
	raw, ok := a[name]
	if !ok {
		return otherwise, nil
	}
	n, ok := whole(raw)
	if !ok {
		return 0, refuse.Failed("The argument \"" + name + "\" must be a whole number; correct it and call again.")
	}
	return n, nil
}

func whole(raw json.RawMessage) (int, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if math.IsInf(f, 0) && err != nil {
		err = nil // out of range is clamped
	}
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	return int(min(max(f, math.MinInt32), math.MaxInt32)), true
}
