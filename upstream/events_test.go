package upstream

import (
	"io"
	"testing"
)

// providerRequest counts how often it is read from.
type providerRequest struct {
	pieces []string
	times  int
}

func (a *providerRequest) Read(p []byte) (int, error) {
	a.times++
	if len(a.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, a.pieces[0])
	if a.pieces[0] = a.pieces[0][n:]; a.pieces[0] == "" {
		a.pieces = a.pieces[1:]
	}
	return n, nil
}

// TestReady holds that Next does not wait where Ready says so, and that nothing is
// lost by asking.
func TestReady(t *testing.T) {
	for why, c := range map[string]struct {
		pieces []string
		ready  string // before each call of Next: y or n
		whole  bool
	}{
		"one by one":           {[]string{textEvent, textEvent, endEvent, doneEvent}, "nnnn", true},
		"all at once":          {[]string{textEvent + textEvent + endEvent + doneEvent}, "nyyn", true},
		"comments alone":       {[]string{textEvent + ": ping\n\n\n\nevent: x\n", endEvent + doneEvent}, "nnn", true},
		"behind comments":      {[]string{textEvent + ": ping\n\n" + textEvent, endEvent + doneEvent}, "nynn", true},
		"a part":               {[]string{textEvent + endEvent[:20], endEvent[20:] + doneEvent}, "nnn", true},
		"all but the end":      {[]string{textEvent + endEvent[:len(endEvent)-1], "\n" + doneEvent}, "nnn", true},
		"a name before a part": {[]string{textEvent + "event: x\n" + endEvent[:20], endEvent[20:] + doneEvent}, "nnn", true},
		"no [DONE]":            {[]string{textEvent + endEvent}, "nyn", true},
		"a cut":                {[]string{textEvent + textEvent + endEvent[:20]}, "nyn", false},
	} {
		for _, twice := range []bool{false, true} {
			from := &providerRequest{pieces: append([]string{}, c.pieces...)}
			e := offline(from)
			found := ""
			for {
				ready := e.Ready()
				if twice && e.Ready() != ready {
					t.Errorf("%s: asked twice, it says two things", why)
				}
				before := from.times
				_, data, err := e.Next()
				if ready && from.times != before {
					t.Errorf("%s: it was ready, and read", why)
				}
				found += map[bool]string{true: "y", false: "n"}[ready]
				if IsDone(data) {
					if err := e.End(nil); err != nil || !c.whole {
						t.Errorf("%s: it ended by [DONE], and %v", why, err)
					}
					break
				}
				if err != nil {
					if e.Ready() || (err == io.EOF) != c.whole {
						t.Errorf("%s: it ended by %v", why, err)
					}
					break
				}
			}
			if found != c.ready {
				t.Errorf("%s: found %s, expected %s", why, found, c.ready)
			}
		}
	}
}
