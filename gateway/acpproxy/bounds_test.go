package acpproxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/acp/wire"
)

// TestRecordIsBounded: long titles, names and paths do not stay in the record of a session, whether
// their calls go on or have ended, and a call that is not kept whole is judged by nothing.
func TestRecordIsBounded(t *testing.T) {
	a := newActivity()
	long := strings.Repeat("x", 1<<20)
	for i := range 20 {
		r := toolReport{ID: fmt.Sprint(i), Title: long, Name: long, Kind: wire.KindRead, Status: wire.Failed}
		if i%2 == 0 {
			r.Status = wire.Pending
		}
		for j := range maxPaths {
			r.Locations = append(r.Locations, fmt.Sprintf("/%d/%s", j, long[:4000]))
		}
		if f := a.report(r, true, time.Now()); f != nil {
			t.Fatal(f.reason)
		}
	}
	for id, c := range a.calls {
		kept := len(c.Title) + len(c.Name)
		for _, path := range c.paths() {
			kept += len(path)
		}
		if most := maxKeptTitle + maxKeptName + maxKeptPaths; kept > most || !c.crowded {
			t.Errorf("of the call %s, %d bytes are kept, at most %d may be (crowded: %t)", id, kept, most, c.crowded)
		}
		a.asked(c.toolReport, true)
		if c.permitted != nil && c.permitted.Title+string(c.permitted.Input) != "" {
			t.Errorf("the call %s keeps what was judged of it twice", id)
		}
	}
}

// TestEvidenceIsOfOneTurn: what was judged before a prompt explains no call that the prompt led to.
func TestEvidenceIsOfOneTurn(t *testing.T) {
	s := newSession("s", open)
	s.judged(wire.MethodReadTextFile, "/w/a", "", false)
	if refused := s.begin(t.Context()); refused != nil {
		t.Fatal(refused)
	}
	done := toolReport{ID: "1", Kind: wire.KindRead, Status: wire.Completed, Locations: []string{"/w/a"}}
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
	call := toolReport{ID: "1", Kind: wire.KindExecute}
	for _, allowed := range []bool{true, false} {
		described, _ := s.described(call)
		s.asked(described, allowed)
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
