package attribution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
)

// TestRecordIsBounded: long titles, names and paths do not stay in the record of a session, whether
// their calls go on or have ended, and a call that is not kept whole is judged by nothing.
func TestRecordIsBounded(t *testing.T) {
	a := New()
	long := strings.Repeat("x", 1<<20)
	for i := range 20 {
		r := Report{ID: fmt.Sprint(i), Title: long, Name: long, Kind: wire.KindRead, Status: wire.Failed}
		if i%2 == 0 {
			r.Status = wire.Pending
		}
		for j := range maxPaths {
			r.Locations = append(r.Locations, fmt.Sprintf("/%d/%s", j, long[:4000]))
		}
		if f := a.Report(r, true, time.Now()); f != nil {
			t.Fatal(f.Reason)
		}
	}
	for id, c := range a.calls {
		kept := len(c.Title) + len(c.Name)
		for _, path := range c.Paths() {
			kept += len(path)
		}
		if most := maxKeptTitle + maxKeptName + maxKeptPaths; kept > most || !c.Crowded {
			t.Errorf("of the call %s, %d bytes are kept, at most %d may be (crowded: %t)", id, kept, most, c.Crowded)
		}
		a.PermissionAnswered(c.Report, true)
		if c.permitted != nil && c.permitted.Title+string(c.permitted.Input) != "" {
			t.Errorf("the call %s keeps what was judged of it twice", id)
		}
	}
}
