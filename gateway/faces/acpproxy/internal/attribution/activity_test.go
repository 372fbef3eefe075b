package attribution

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
)

// step is one thing that an agent does, or that was judged of it.
type step func(*Activity) *Finding

func call(id string, kind wire.ToolKind, status wire.ToolStatus, more ...func(*Report)) step {
	return reported(true, id, kind, status, more)
}

func update(id string, status wire.ToolStatus, more ...func(*Report)) step {
	return reported(false, id, "", status, more)
}

func reported(announces bool, id string, kind wire.ToolKind, status wire.ToolStatus, more []func(*Report)) step {
	r := Report{ID: id, Kind: kind, Status: status}
	for _, m := range more {
		m(&r)
	}
	return func(a *Activity) *Finding { return a.Report(r, announces, time.Unix(0, 0)) }
}

func at(paths ...string) func(*Report)   { return func(r *Report) { r.Locations = paths } }
func diff(paths ...string) func(*Report) { return func(r *Report) { r.Diffs = paths } }
func shows(ids ...string) func(*Report)  { return func(r *Report) { r.Terminals = ids } }

// outputs is a report of an output, and exits of an exit status.
func outputs(r *Report) { r.Output = true }
func exits(r *Report)   { r.Output, r.Exited = true, true }

func named(name string) func(*Report) { return func(r *Report) { r.Name = name } }

func kind(k wire.ToolKind) func(*Report) { return func(r *Report) { r.Kind = k } }

// asks is a request for permission that was judged.
func asks(id string, allowed bool, more ...func(*Report)) step {
	return func(a *Activity) *Finding {
		r := Report{ID: id}
		for _, m := range more {
			m(&r)
		}
		c, fault := a.call(r, false)
		if fault == nil {
			a.PermissionAnswered(c.Report, allowed)
		}
		return fault
	}
}

func judged(method, path, terminal string, refused bool) step {
	return func(a *Activity) *Finding { a.Judged(method, path, terminal, refused); return nil }
}

func reads(path string) step    { return judged(wire.MethodReadTextFile, path, "", false) }
func writes(path string) step   { return judged(wire.MethodWriteTextFile, path, "", false) }
func runs(terminal string) step { return judged(wire.MethodTerminalCreate, "", terminal, false) }

func endsTurn(a *Activity) *Finding {
	if found := a.EndTurn(); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// TestAttribution: which tool calls have been judged, and which ran unjudged.
func TestAttribution(t *testing.T) {
	const running, done, failed = wire.InProgress, wire.Completed, wire.Failed
	for name, c := range map[string]struct {
		steps []step
		found string // part of the reason; empty: nothing was found
	}{
		"asked for":                     {[]step{call("1", wire.KindExecute, ""), asks("1", true), update("1", running), update("1", done)}, ""},
		"asked for at once":             {[]step{asks("1", true, kind(wire.KindFetch)), update("1", done)}, ""},
		"not asked for":                 {[]step{call("1", wire.KindExecute, ""), update("1", running), update("1", done)}, "without having been asked for"},
		"completed at once":             {[]step{call("1", wire.KindFetch, done)}, "without having been asked for"},
		"another was asked for":         {[]step{call("1", wire.KindExecute, ""), asks("2", true), update("1", done)}, "without having been asked for"},
		"denied, and failed":            {[]step{call("1", wire.KindExecute, ""), asks("1", false), update("1", failed)}, ""},
		"runs, denied, failed":          {[]step{call("1", wire.KindExecute, running), asks("1", false), update("1", failed)}, ""},
		"runs, denied, turn ends":       {[]step{call("1", wire.KindExecute, running), asks("1", false), endsTurn}, ""},
		"a denied diff, and failed":     {[]step{call("1", wire.KindEdit, "", diff("/a")), asks("1", false), update("1", failed)}, ""},
		"a denied terminal, and failed": {[]step{call("1", wire.KindExecute, running, shows("t")), asks("1", false), update("1", failed)}, ""},
		"denied, failed with a diff":    {[]step{call("1", wire.KindEdit, "", diff("/a")), asks("1", false), update("1", failed, diff("/b"))}, ""},
		"denied, failed with a reason":  {[]step{call("1", wire.KindExecute, running), asks("1", false), update("1", failed, outputs)}, ""},
		"denied, then a terminal":       {[]step{call("1", wire.KindExecute, "", shows("t")), asks("1", false), update("1", failed, shows("u"))}, "although it was denied"},
		"denied, then runs and fails":   {[]step{call("1", wire.KindExecute, ""), asks("1", false), update("1", running), update("1", failed, outputs)}, "although it was denied"},
		"denied, and exited":            {[]step{call("1", wire.KindExecute, ""), asks("1", false), update("1", failed, exits)}, "although it was denied"},
		"a denied diff, and completed":  {[]step{call("1", wire.KindEdit, "", diff("/a")), asks("1", false), update("1", done)}, "although it was denied"},
		"denied, and completed":         {[]step{call("1", wire.KindExecute, ""), asks("1", false), update("1", done)}, "although it was denied"},
		"denied, then runs":             {[]step{call("1", wire.KindExecute, ""), asks("1", false), update("1", running), endsTurn}, "although it was denied"},
		"denied, then allowed":          {[]step{call("1", wire.KindExecute, ""), asks("1", false), asks("1", true), update("1", done)}, ""},
		"allowed, then denied":          {[]step{call("1", wire.KindExecute, ""), asks("1", true), asks("1", false), update("1", done)}, "although it was denied"},
		"failed before it ran":          {[]step{call("1", wire.KindExecute, ""), update("1", failed)}, ""},
		"failed without an output":      {[]step{call("1", wire.KindExecute, running), update("1", failed)}, ""},
		"failed with a reason":          {[]step{call("1", wire.KindExecute, ""), update("1", failed, outputs)}, ""},
		"failed with an output":         {[]step{call("1", wire.KindExecute, running), update("1", failed, outputs)}, "without having been asked for"},
		"fetched, and failed":           {[]step{call("1", wire.KindFetch, running), update("1", failed, outputs)}, "without having been asked for"},
		"another kind, and failed":      {[]step{call("1", wire.KindOther, running), update("1", failed, outputs)}, "without having been asked for"},
		"failed after an output":        {[]step{call("1", wire.KindExecute, running), update("1", running, outputs), update("1", failed)}, "without having been asked for"},
		"an output without a status":    {[]step{call("1", wire.KindEdit, running), update("1", "", outputs), update("1", failed)}, "without having been asked for"},
		"an output after it failed":     {[]step{call("1", wire.KindExecute, running), update("1", failed), update("1", "", outputs)}, "without having been asked for"},
		"failed, then completed":        {[]step{call("1", wire.KindEdit, ""), update("1", failed), update("1", done)}, "without having been asked for"},
		"exited":                        {[]step{call("1", wire.KindExecute, ""), update("1", failed, exits)}, "without having been asked for"},
		"described, and failed":         {[]step{call("1", wire.KindExecute, running, outputs), update("1", failed)}, ""},
		"described before, and failed":  {[]step{call("1", wire.KindExecute, ""), update("1", "", outputs), update("1", running), update("1", failed)}, ""},
		"failed with a terminal":        {[]step{call("1", wire.KindExecute, "", shows("t")), update("1", failed)}, "without having been asked for"},
		"failed with a diff":            {[]step{call("1", wire.KindEdit, "", diff("/a")), update("1", failed)}, ""},
		"a diff late, and failed":       {[]step{call("1", wire.KindEdit, running), update("1", "", diff("/a")), update("1", failed, diff("/a"))}, ""},
		"an edit that was not possible": {[]step{call("1", wire.KindEdit, running, at("/a")), update("1", failed, outputs)}, ""},
		"a read that was not possible":  {[]step{call("1", wire.KindRead, running, at("/a")), update("1", failed, outputs)}, ""},
		"failed, and asked for":         {[]step{call("1", wire.KindExecute, running), asks("1", true), update("1", failed, exits)}, ""},
		"failed, and its write judged":  {[]step{call("1", wire.KindEdit, running, at("/a")), writes("/a"), update("1", running, outputs), update("1", failed)}, ""},
		"a failed one takes its write":  {[]step{call("1", wire.KindEdit, running, at("/a")), writes("/a"), update("1", failed), call("2", wire.KindEdit, done, at("/a"))}, "without having been asked for"},
		"runs at the end of the turn":   {[]step{call("1", wire.KindExecute, running), endsTurn}, "without having been asked for"},
		"pending at the end":            {[]step{call("1", wire.KindExecute, ""), endsTurn}, ""},
		"the kind changes":              {[]step{call("1", wire.KindRead, ""), asks("1", true), update("1", done, kind(wire.KindExecute))}, "allowed as read and ran as execute"},
		"another path changes":          {[]step{call("1", wire.KindEdit, "", at("/a")), asks("1", true), update("1", done, diff("/b"))}, "a path that it was not allowed for"},
		"another path, judged":          {[]step{call("1", wire.KindEdit, "", at("/a")), asks("1", true), writes("/b"), update("1", done, diff("/b"))}, ""},
		"a path is unsaid":              {[]step{call("1", wire.KindDelete, "", at("/a")), asks("1", true), update("1", running, at("/b")), update("1", done, at("/a"))}, "a path that it was not allowed for"},
		"found paths":                   {[]step{call("1", wire.KindSearch, ""), asks("1", true), update("1", done, at("/a", "/b"))}, ""},
		"an id again":                   {[]step{call("1", wire.KindExecute, ""), asks("1", true), update("1", done), call("1", wire.KindExecute, done)}, "without having been asked for"},
		"a late update":                 {[]step{call("1", wire.KindExecute, ""), asks("1", true), update("1", done), update("1", running), endsTurn}, ""},
		"reads":                         {[]step{call("1", wire.KindRead, running, at("/a")), reads("/a"), update("1", done)}, ""},
		"reads first":                   {[]step{reads("/a"), call("1", wire.KindRead, done, at("/a"))}, ""},
		"reads another":                 {[]step{call("1", wire.KindRead, running, at("/a")), reads("/b"), update("1", done)}, "without having been asked for"},
		"reads one of two":              {[]step{call("1", wire.KindRead, running, at("/a", "/b")), reads("/b"), update("1", done)}, "without having been asked for"},
		"reads both":                    {[]step{call("1", wire.KindRead, running, at("/a", "/b")), reads("/b"), reads("/a"), update("1", done)}, ""},
		"reads once, twice reported":    {[]step{call("1", wire.KindRead, "", at("/a")), call("2", wire.KindRead, "", at("/a")), reads("/a"), update("1", done), update("2", done)}, "without having been asked for"},
		"reads without a path":          {[]step{call("1", wire.KindRead, running), reads("/a"), update("1", done)}, ""},
		"read before, without a path":   {[]step{reads("/a"), call("1", wire.KindRead, running), update("1", done)}, "without having been asked for"},
		"a read is no write":            {[]step{call("1", wire.KindEdit, running, at("/a")), reads("/a"), update("1", done)}, "without having been asked for"},
		"writes":                        {[]step{call("1", wire.KindEdit, running, at("/a"), diff("/a")), writes("/a"), update("1", done)}, ""},
		"writes less than its diffs":    {[]step{call("1", wire.KindEdit, running, diff("/a")), writes("/a"), update("1", done, diff("/b"))}, "without having been asked for"},
		"a write does not delete":       {[]step{call("1", wire.KindDelete, running, at("/a")), writes("/a"), update("1", done)}, "without having been asked for"},
		"a refused write":               {[]step{call("1", wire.KindEdit, running, at("/a")), judged(wire.MethodWriteTextFile, "/a", "", true), update("1", failed)}, ""},
		"a refused write, completed":    {[]step{call("1", wire.KindEdit, running, at("/a")), judged(wire.MethodWriteTextFile, "/a", "", true), update("1", done)}, "without having been asked for"},
		"a terminal":                    {[]step{call("1", wire.KindExecute, running), runs("t"), update("1", done, shows("t"))}, ""},
		"a terminal, not shown":         {[]step{call("1", wire.KindExecute, running), runs("t"), update("1", done)}, ""},
		"another terminal":              {[]step{call("1", wire.KindExecute, running), runs("t"), update("1", done, shows("u"))}, "without having been asked for"},
		"a terminal of another call":    {[]step{call("1", wire.KindExecute, ""), call("2", wire.KindExecute, ""), runs("t"), update("1", done, shows("t")), update("2", done, shows("t"))}, "without having been asked for"},
		"a terminal of the turn before": {[]step{runs("t"), endsTurn, call("1", wire.KindExecute, done, shows("t"))}, "without having been asked for"},
		"a search by a terminal":        {[]step{call("1", wire.KindSearch, running), runs("t"), update("1", done)}, ""},
		"thinking needs asking":         {[]step{call("1", wire.KindThink, running), reads("/a"), update("1", done)}, "without having been asked for"},
		"found once":                    {[]step{call("1", wire.KindFetch, running), func(a *Activity) *Finding { a.EndTurn(); return nil }, update("1", done), endsTurn}, ""},
		"the name changes":              {[]step{call("1", wire.KindExecute, "", named("deploy")), asks("1", true), update("1", done, named("shell"))}, "as another tool"},
		"a name is told late":           {[]step{call("1", wire.KindExecute, ""), asks("1", true), update("1", done, named("shell"))}, ""},
		"too many paths":                {[]step{call("1", wire.KindEdit, running, diff(many(maxPaths+1)...)), asks("1", true), update("1", done)}, "a path that it was not allowed for"},
		"a long input":                  {[]step{call("1", wire.KindEdit, running, at("/a"), func(r *Report) { r.Input = make(json.RawMessage, maxKeptInput+1) }), writes("/a"), update("1", done)}, "without having been asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			a := New()
			var found *Finding
			for _, s := range c.steps {
				if f := s(a); f != nil && found == nil {
					found = f
				}
			}
			switch {
			case c.found == "" && found != nil:
				t.Errorf("found: %s", found.Reason)
			case c.found != "" && (found == nil || !strings.Contains(found.Reason, c.found)):
				t.Errorf("found %v, expected %q", found, c.found)
			}
		})
	}
}

func many(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("/%d", i))
	}
	return paths
}

// TestOverdue: a call that runs is found after a time, once.
func TestOverdue(t *testing.T) {
	a := New()
	call("1", wire.KindExecute, wire.InProgress)(a)
	call("2", wire.KindExecute, "")(a)
	if found := a.Overdue(time.Unix(-1, 0)); len(found) != 0 {
		t.Errorf("too early: %v", found)
	}
	if found := a.Overdue(time.Unix(1, 0)); len(found) != 1 || found[0].ID != "1" {
		t.Errorf("%v", found)
	}
	if found := a.Overdue(time.Unix(1, 0)); len(found) != 0 {
		t.Errorf("found again: %v", found)
	}
}

// TestActivityIsBounded: whatever an agent reports, what is kept is bounded, and what is not kept
// counts as unjudged.
func TestActivityIsBounded(t *testing.T) {
	a := New()
	for i := range maxLiveCalls {
		if f := call(fmt.Sprint(i), wire.KindRead, "")(a); f != nil {
			t.Fatal(f.Reason)
		}
	}
	if f := call("more", wire.KindRead, "")(a); f == nil {
		t.Error("one call more than can be told apart")
	}
	a = New()
	for i := range 3 * maxEndedCalls {
		id := fmt.Sprint(i)
		asks(id, true)(a)
		if f := update(id, wire.Completed)(a); f != nil {
			t.Fatal(f.Reason)
		}
		a.Judged(wire.MethodReadTextFile, "/a", "", false)
	}
	if len(a.calls) > maxEndedCalls || len(a.did) > maxEvidence {
		t.Errorf("%d calls and %d requests are kept", len(a.calls), len(a.did))
	}
	if f := update("0", wire.Completed)(a); f == nil {
		t.Error("a forgotten call is taken for one that was judged")
	}
}
