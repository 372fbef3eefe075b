package upstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
)

func TestRefusalsOfReadings(t *testing.T) {
	route := &Route{Upstream: "sample"}
	for cause, err := range map[string]*refusal.Error{
		"sample: found a block twice": Malformed(route, errors.New("a block twice")),
		"sample: no message_stop":     BrokenOff(route, errors.New("no message_stop")),
	} {
		if code(t, err) != unusable {
			t.Errorf("found %v", err)
		}
		mustContain(t, err, cause)
		if refused := err.Message; strings.Contains(cause, "found") && !strings.Contains(refused, "a block twice") || strings.Contains(refused, "othing of") {
			t.Errorf("the caller is told %s", refused)
		}
	}
}
