package acpproxy

import (
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/internal/acp/wire"
)

// TestEvidenceIsOfOneTurn: what was judged before a prompt explains no call that the prompt led to.
func TestEvidenceIsOfOneTurn(t *testing.T) {
	s := newSession("s", open)
	s.judged(wire.MethodReadTextFile, "/w/a", "", false)
	if refused := s.begin(t.Context()); refused != nil {
		t.Fatal(refused)
	}
	done := attribution.Report{ID: "1", Kind: wire.KindRead, Status: wire.Completed, Locations: []string{"/w/a"}}
	if s.report(done, true, time.Now()) == nil {
		t.Error("a read before the prompt explained one of the prompt")
	}
	s.end()
}

// TestAskedAgainAfterItsEnd: a call that has ended and is asked for again is another one, so that a
// denial counts.
func TestAskedAgainAfterItsEnd(t *testing.T) {
	s := newSession("s", open)
	if refused := s.begin(t.Context()); refused != nil {
		t.Fatal(refused)
	}
	call := attribution.Report{ID: "1", Kind: wire.KindExecute}
	for _, allowed := range []bool{true, false} {
		described, _ := s.described(call)
		s.permissionAnswered(described, allowed)
		done := call
		done.Status = wire.Completed
		if found := s.report(done, false, time.Now()); (found == nil) != allowed {
			t.Errorf("allowed: %t, found: %+v", allowed, found)
		}
	}
	s.end()
}

// TestChoiceThatAsksNobody: a choice that is named like such a mode is not shown, whatever its values
// are called, and the session may not begin with it on.
func TestChoiceThatAsksNobody(t *testing.T) {
	for current, asks := range map[string]bool{"on": false, "1": false, "off": true} {
		o := wire.ConfigOption{ID: "x", Name: "YOLO mode", Current: current, Options: []wire.ConfigValue{{Value: "on", Name: "On"}, {Value: "off", Name: "Off"}, {Value: "1", Name: "One"}}}
		if filtered, got := (modeRules{}).filterOptions([]wire.ConfigOption{o}); len(filtered) != 0 || got != asks {
			t.Errorf("%s: %+v, asks: %t", current, filtered, got)
		}
		o.Category = "model"
		if filtered, got := (modeRules{}).filterOptions([]wire.ConfigOption{o}); len(filtered) != 1 || !got {
			t.Errorf("a model: %+v, asks: %t", filtered, got)
		}
	}
}
