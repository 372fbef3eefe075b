package upstream

import (
	"errors"
	"testing"
)

func TestRefusalsOfReadings(t *testing.T) {
	route := &Route{Upstream: "sample"}
	for cause, err := range map[string]error{
		"sample: found a block twice": Malformed(route, errors.New("a block twice")),
		"sample: no message_stop":     BrokenOff(route, errors.New("no message_stop")),
	} {
		if code(t, err) != unusable {
			t.Errorf("found %v", err)
		}
		mustContain(t, err, cause)
	}
}
