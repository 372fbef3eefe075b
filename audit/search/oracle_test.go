package search

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/audit"
)

// wanted is what a query selects, by its documentation.
func wanted(q Query, r audit.Record) bool {
	like := func(value, want string) bool {
		if prefix, ok := strings.CutSuffix(want, "*"); ok {
			return strings.HasPrefix(value, prefix)
		}
		return want == "" || value == want
	}
	return like(r.Agent, q.Agent) && like(r.Tool, q.Tool) && like(string(r.Code), q.Code) && like(r.Project, q.Project) && like(r.Workspace, q.Workspace) &&
		(len(q.AnyOf) == 0 || q.AnyOf[r.CallID]) && (q.Verdict == "" || q.Verdict == r.Verdict) && (q.Call == "" || r.CallID == q.Call || slices.Contains(r.Approvals, q.Call)) &&
		(q.Since.IsZero() || !r.Time.Before(q.Since)) && (q.Until.IsZero() || r.Time.Before(q.Until))
}

// A search finds what a reading of every record does: over files, logs, sizes of pieces, in both
// orders, whatever strings are in the members and in the content.
func TestSearchFindsWhatReadingDoes(t *testing.T) {
	names := []string{"a", "web.search", "web", `we"b`, "wéb", `,"agent":"a"`, "*", `a\`, "\u2028", ""}
	base := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		name := rapid.SampledFrom(names)
		var dirs []string
		var all []audit.Record
		ordered := map[string][]audit.Record{}
		for c := range rapid.IntRange(1, 3).Draw(rt, "logs") {
			dir := filepath.Join(base, fmt.Sprint(runs, "-", c))
			at := noon
			for file := range rapid.IntRange(1, 3).Draw(rt, "files") {
				if file > 0 {
					rotate(t, dir, fmt.Sprint(file))
				}
				var records []audit.Record
				for range rapid.IntRange(0, 12).Draw(rt, "records") {
					at = at.Add(time.Duration(rapid.IntRange(-3, 60).Draw(rt, "minutes")) * time.Minute)
					r := refused(rapid.SampledFrom([]string{"call_1", "call_2", "call_3", `call_"4\`}).Draw(rt, "call"), at)
					r.Agent, r.Tool, r.Project = name.Draw(rt, "agent"), name.Draw(rt, "tool"), name.Draw(rt, "project")
					if rapid.Bool().Draw(rt, "text") {
						r.Verdict, r.Stage, r.Code = audit.Text, "", ""
					}
					if rapid.Bool().Draw(rt, "approved") {
						r.Approvals = []string{"call_9", "call_1"}
					}
					r.Arguments, _ = json.Marshal(map[string]any{"agent": "a", "tool": name.Draw(rt, "argument"), "time": "2026-11-20T12:00:00Z", "call_2": "call_2"})
					records = append(records, r)
				}
				write(t, dir, records...)
				all = append(all, records...)
				ordered[dir] = append(ordered[dir], records...)
			}
			dirs = append(dirs, dir)
		}
		q := Query{}
		for _, m := range []*string{&q.Agent, &q.Tool, &q.Project} {
			if rapid.Bool().Draw(rt, "named") {
				*m = strings.TrimSuffix(name.Draw(rt, "value"), "*") + rapid.SampledFrom([]string{"", "*"}).Draw(rt, "star")
			}
		}
		q.Call = rapid.SampledFrom([]string{"", "", "call_1", "call_2", "call_9"}).Draw(rt, "wanted call")
		q.AnyOf = rapid.SampledFrom([]map[string]bool{nil, nil, {"call_1": true}, {`call_"4\`: true}, {"call_9": true, "call_3": true, "call_2": true}}).Draw(rt, "wanted calls")
		q.Verdict = rapid.SampledFrom([]audit.Verdict{"", "", audit.Refused}).Draw(rt, "verdict")
		if rapid.Bool().Draw(rt, "since") {
			q.Since = noon.Add(time.Duration(rapid.IntRange(-60, 1200).Draw(rt, "since minutes")) * time.Minute)
		}
		if rapid.Bool().Draw(rt, "until") {
			q.Until = noon.Add(time.Duration(rapid.IntRange(-60, 1200).Draw(rt, "until minutes")) * time.Minute)
		}
		opts := Options{NewestFirst: rapid.Bool().Draw(rt, "newest first"), piece: rapid.SampledFrom([]int64{1, 100, 700, 4000, 0}).Draw(rt, "piece")}
		found, faults := find(rt2{t, rt}, dirs, q, opts)
		if len(faults) > 0 {
			rt.Fatalf("faults: %q", faults)
		}
		if opts.NewestFirst {
			slices.Reverse(found)
		}
		want := 0
		for _, r := range all {
			if wanted(q, r) {
				want++
			}
		}
		if len(found) != want {
			rt.Fatalf("%+v: found %d, want %d", q, len(found), want)
		}
		// Within one log the order is the log's; found also has the bytes of the line.
		for _, dir := range dirs {
			last := uint64(0)
			for i, r := range ordered[dir] {
				if !wanted(q, r) {
					continue
				}
				at := slices.IndexFunc(found, func(f Found) bool {
					return f.Seq == uint64(i)+1 && f.Time.Equal(r.Time) && f.CallID == r.CallID && f.Agent == strings.ToValidUTF8(r.Agent, "")
				})
				if at < 0 || found[at].Seq <= last && len(dirs) == 1 || !json.Valid(found[at].Line) {
					rt.Fatalf("%+v: seq %d of %s is missing, or out of order", q, i+1, dir)
				}
				last = found[at].Seq
			}
		}
	})
}

// rt2 fails a run of rapid where a helper fails a test.
type rt2 struct {
	*testing.T
	rt *rapid.T
}

func (t rt2) Fatal(args ...any) { t.rt.Fatal(args...) }
