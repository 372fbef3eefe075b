package attribution

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/text"
)

// The bounds of the record of a session.
const (
	// maxLiveCalls bounds the tool calls that an agent has reported and that have not ended.
	maxLiveCalls = 256
	// maxEndedCalls bounds those that have: a call beyond them counts as a new one.
	maxEndedCalls = 1024
	// maxEvidence bounds the judged requests of a turn that no tool call was attributed to.
	maxEvidence = 1024
	// maxPaths bounds the paths and terminals of a call. One with more is attributed to nothing.
	maxPaths = 256
	// maxKeptInput bounds the input of a call that is kept for the question whether it may run.
	maxKeptInput = 256 << 10
	// maxKeptTitle, maxKeptName and maxKeptPaths bound the bytes of the title, of the name, and of
	// all paths and terminals of a call that are kept.
	maxKeptTitle = 64 << 10
	maxKeptName  = 1 << 10
	maxKeptPaths = 64 << 10
)

// Report is a tool call as an agent reports it: in tool_call, in tool_call_update, or in a
// request for permission. An empty field was not reported.
type Report struct {
	ID, Title, Name string
	Kind            wire.ToolKind
	Status          wire.ToolStatus
	Locations       []string // paths
	Diffs           []string // paths
	Terminals       []string // ids
	Input           json.RawMessage
	// Output says that it has an output, which of a failed call may be the reason alone, and Exited
	// that it names the exit status of a program.
	Output, Exited bool
	// Crowded says that it has more, or longer texts, than is kept, and kept is how many bytes its
	// paths and terminals have.
	Crowded bool
	kept    int
}

// Paths are all paths of a report.
func (r *Report) Paths() []string { return slices.Concat(r.Locations, r.Diffs) }

// Changes reports whether the call changes files.
func (r *Report) Changes() bool {
	return slices.Contains([]wire.ToolKind{wire.KindEdit, wire.KindDelete, wire.KindMove}, r.Kind)
}

// merge takes what a later report says.
func (r *Report) merge(later Report) {
	for _, word := range []struct{ to, from *string }{{&r.Title, &later.Title}, {&r.Name, &later.Name}} {
		if *word.from != "" {
			*word.to = *word.from
		}
	}
	if later.Kind != "" {
		r.Kind = later.Kind
	}
	if later.Status != "" {
		r.Status = later.Status
	}
	if later.Input != nil {
		r.Input = later.Input
	}
	r.Crowded = r.Crowded || later.Crowded
	// A path that was reported once stays: an agent cannot unsay it by a shorter list.
	for _, list := range []struct {
		to   *[]string
		from []string
	}{{&r.Locations, later.Locations}, {&r.Diffs, later.Diffs}, {&r.Terminals, later.Terminals}} {
		for _, s := range list.from {
			switch {
			case slices.Contains(*list.to, s):
			case len(*list.to) == maxPaths || r.kept+len(s) > maxKeptPaths:
				r.Crowded = true
			default:
				r.kept += len(s)
				*list.to = append(*list.to, s)
			}
		}
	}
}

// reportedCall is a tool call of an agent and what is known of its judgement.
type reportedCall struct {
	Report
	announced int // its place among the judged requests
	// permitted are the judged kind and paths, where the agent asked and was allowed.
	permitted *Report
	denied    bool // the agent asked and was not allowed
	proposed  int  // the terminals that it had shown when it was denied
	running   time.Time
	ran       bool // it has shown an output of its run
	ended     bool
	flagged   bool
	covered   map[string]bool // paths that judged requests are attributed to
	evident   bool            // at least one is
}

// evidence is a request for a file or a terminal that was judged.
type evidence struct {
	place    int
	method   string
	path     string
	terminal string
	refused  bool
	used     bool
}

// Activity is the record of a session: what its agent reports, and what was judged. It is not
// safe for concurrent use.
//
// A tool call that ends must have been judged: the agent has asked for this very call and was
// allowed, with the name, the kind and, for a change, with the paths that were judged, or requests of this
// turn that were judged cover what it reports. Each request covers one call.
//
//	read          reads of all its paths, or of any where it names none
//	edit          writes of all its paths
//	execute       its terminals, or any terminal where it shows none
//	search, other reads, writes or terminals: of all its paths, or any
//	delete, move, fetch, think, switch_mode    nothing: the agent has to ask
//
// A call that fails without having run needs nothing. To be in progress is no proof of having run, as agents
// say so before they ask, and neither is a diff, which they show as what they are about to do. These are:
//
//	an exit status
//	a terminal, which nobody has before it runs
//	an output while the call is in progress
//	of execute, fetch and other: an output with which a call in progress fails. What other kinds fail with
//	is taken for the reason: they have done all or nothing.
type Activity struct {
	calls map[string]*reportedCall
	ended []string // ids of calls that have ended, the oldest first
	did   []evidence
	place int
}

// New is the record of a session that begins.
func New() *Activity { return &Activity{calls: map[string]*reportedCall{}} }

// Finding is a tool call that ran without having been judged.
type Finding struct {
	Report
	Reason string
}

// Report takes a report, and returns what it shows to have run unjudged.
func (a *Activity) Report(r Report, announces bool, now time.Time) *Finding {
	c, fault := a.call(r, announces)
	if fault != nil {
		return fault
	}
	showsRun := r.Output && !c.running.IsZero() && (c.Status != wire.Failed || c.acts())
	if showsRun || r.Exited && c.Status == wire.Failed || r.Status == wire.Completed {
		c.ran = true
	}
	switch c.Status {
	case wire.InProgress:
		if c.running.IsZero() {
			c.running = now
		}
	case wire.Completed, wire.Failed:
		found := a.settle(c)
		a.end(c)
		return found
	}
	return nil
}

// call is the call of a report, with what the report says.
func (a *Activity) call(r Report, announces bool) (*reportedCall, *Finding) {
	if len(r.Input) > maxKeptInput {
		r.Input, r.Crowded = nil, true
	}
	if len(r.Title) > maxKeptTitle || len(r.Name) > maxKeptName {
		r.Title, r.Name, r.Crowded = text.Cut(r.Title, maxKeptTitle), text.Cut(r.Name, maxKeptName), true
	}
	c := a.calls[r.ID]
	if c == nil || announces && c.ended { // an id is of one call: what was judged before is not this one
		if len(a.calls)-len(a.ended) >= maxLiveCalls {
			return nil, &Finding{r, "more tool calls are open than can be told apart"}
		}
		if c != nil {
			a.ended = slices.DeleteFunc(a.ended, func(id string) bool { return id == r.ID })
		}
		c = &reportedCall{Report: Report{ID: r.ID, Kind: wire.KindOther, Status: wire.Pending}, announced: a.place,
			covered: map[string]bool{}}
		a.calls[r.ID] = c
	}
	status := c.Status
	c.merge(r)
	if c.ended && r.Status != "" {
		c.Status = status // terminal states do not change
	}
	return c, nil
}

// end notes that a call has ended, and forgets the oldest where there are too many.
func (a *Activity) end(c *reportedCall) {
	if c.ended {
		return
	}
	c.ended, c.Input, c.Title = true, nil, text.Cut(c.Title, maxKeptName)
	if a.ended = append(a.ended, c.ID); len(a.ended) > maxEndedCalls {
		delete(a.calls, a.ended[0])
		a.ended = a.ended[1:]
	}
}

// acts reports whether a call may have had an effect although it failed.
func (c *reportedCall) acts() bool {
	return slices.Contains([]wire.ToolKind{wire.KindExecute, wire.KindFetch, wire.KindOther}, c.Kind)
}

// settle says whether a call that has ended, or should be judged by now, ran unjudged.
func (a *Activity) settle(c *reportedCall) *Finding {
	if c.flagged {
		return nil
	}
	if c.Status == wire.Failed && !c.ran && len(c.Terminals) == c.proposed {
		if !c.running.IsZero() {
			a.cover(c) // what was judged for it is not of another call
		}
		return nil
	}
	reason := a.unjudged(c)
	if reason == "" {
		return nil
	}
	c.flagged = true
	return &Finding{c.Report, reason}
}

// unjudged is why a call has not been judged; empty where it has.
func (a *Activity) unjudged(c *reportedCall) string {
	if p := c.permitted; p != nil {
		switch {
		case p.Name != "" && c.Name != p.Name:
			return "it was allowed as another tool than it ran as"
		case c.Kind != p.Kind:
			return "it was allowed as " + string(p.Kind) + " and ran as " + string(c.Kind)
		case !c.Changes() || !c.Crowded && subset(c.Paths(), p.Paths()):
			return ""
		}
	}
	if a.cover(c) {
		return ""
	}
	switch {
	case c.denied:
		return "it ran although it was denied"
	case c.permitted != nil:
		return "it changed a path that it was not allowed for"
	}
	return "it ran without having been asked for"
}

// covering are the methods whose judged requests a call of a kind can be attributed to.
func covering(kind wire.ToolKind) []string {
	switch kind {
	case wire.KindRead:
		return []string{wire.MethodReadTextFile}
	case wire.KindEdit:
		return []string{wire.MethodWriteTextFile}
	case wire.KindExecute:
		return []string{wire.MethodTerminalCreate}
	case wire.KindSearch, wire.KindOther:
		return []string{wire.MethodReadTextFile, wire.MethodWriteTextFile, wire.MethodTerminalCreate}
	}
	return nil
}

// cover attributes judged requests to a call, and reports whether they cover it.
func (a *Activity) cover(c *reportedCall) bool {
	methods := covering(c.Kind)
	if methods == nil || c.Crowded {
		return false
	}
	take := func(fits func(*evidence) bool) bool {
		for i := range a.did {
			e := &a.did[i]
			if !e.used && slices.Contains(methods, e.method) && (!e.refused || c.Status != wire.Completed) && fits(e) {
				e.used, c.evident = true, true
				return true
			}
		}
		return false
	}
	paths := c.Paths()
	if c.Kind == wire.KindExecute {
		paths = nil // a command's files are not those that it names
	}
	if permitted := c.permitted; permitted != nil {
		paths = slices.DeleteFunc(paths, func(p string) bool { return slices.Contains(permitted.Paths(), p) })
	}
	for _, path := range paths {
		if !c.covered[path] && !take(func(e *evidence) bool { return e.path == path }) {
			return false
		}
		c.covered[path] = true
	}
	for _, id := range c.Terminals {
		if !c.covered[id] && !take(func(e *evidence) bool { return e.terminal == id }) {
			return false
		}
		c.covered[id] = true
	}
	return c.evident || take(func(e *evidence) bool { return e.place >= c.announced })
}

// Path is a path of a report of a call as an absolute one. A relative path is that of a file which the
// call is known to be about, if it is the end of that one's path alone, since agents report the name of a
// file for its path; else it starts in the folder of the session.
func (a *Activity) Path(id, path, cwd string) string {
	if filepath.IsAbs(path) {
		return path
	}
	full := filepath.Join(cwd, path)
	c := a.calls[id]
	if c == nil || slices.Contains(c.Paths(), full) {
		return full
	}
	known := slices.DeleteFunc(c.Paths(), func(p string) bool { return !strings.HasSuffix(p, "/"+filepath.Clean(path)) })
	slices.Sort(known)
	if known = slices.Compact(known); len(known) == 1 {
		return known[0]
	}
	return full
}

// Reported is the id of the open call that a request for a file or a terminal belongs to: the only one of a
// fitting kind that names the file or the command, or where none does, that names none. It is empty where
// there is none, or several.
func (a *Activity) Reported(method, path, command string) string {
	var named, unnamed []string
	for id, c := range a.calls {
		if c.ended || !slices.Contains(covering(c.Kind), method) {
			continue
		}
		names, fits := len(c.Paths()) > 0, slices.Contains(c.Paths(), path)
		if path == "" {
			line := commandOf(c.Input)
			names, fits = line != "" || c.Kind != wire.KindExecute, line != "" && strings.Contains(command, line)
		}
		switch {
		case fits:
			named = append(named, id)
		case !names:
			unnamed = append(unnamed, id)
		}
	}
	if len(named) == 0 {
		named = unnamed
	}
	if len(named) != 1 {
		return ""
	}
	return named[0]
}

// commandOf is the command that the input of a call states; empty where it states none.
func commandOf(input json.RawMessage) string {
	var members struct{ Command string }
	_ = json.Unmarshal(input, &members) // an input of another form states none
	return members.Command
}

// Judged notes a request for a file or a terminal that was judged.
func (a *Activity) Judged(method, path, terminal string, refused bool) {
	a.did = append(a.did, evidence{place: a.place, method: method, path: path, terminal: terminal, refused: refused})
	a.place++
	if len(a.did) > maxEvidence {
		a.did = a.did[1:]
	}
}

// Described is the tool call of a request for permission, with what was reported of it before.
func (a *Activity) Described(r Report) (Report, *Finding) {
	r.Status = ""               // to be asked for is no status
	c, fault := a.call(r, true) // one that has ended is not asked for again
	if fault != nil {
		return r, fault
	}
	described := c.Report
	described.Locations, described.Diffs = slices.Clone(c.Locations), slices.Clone(c.Diffs)
	return described, nil
}

// PermissionAnswered notes what came of a request for permission. The report is what was judged.
func (a *Activity) PermissionAnswered(judged Report, allowed bool) {
	c := a.calls[judged.ID]
	if c == nil || c.ended {
		return
	}
	c.permitted, c.denied, c.proposed = nil, !allowed, 0
	if allowed {
		judged.Title, judged.Input = "", nil
		c.permitted = &judged
	} else {
		c.running, c.ran = time.Time{}, false // it was reported to run before it was asked for
		c.proposed = len(c.Terminals)
	}
}

// Overdue returns the calls that have run for some time without having been judged.
func (a *Activity) Overdue(since time.Time) []Finding {
	return a.open(func(c *reportedCall) bool { return !c.running.IsZero() && !c.running.After(since) })
}

// BeginTurn begins a turn: what was judged before is of no call of it.
func (a *Activity) BeginTurn() { a.did = nil }

// EndTurn ends the calls of a turn, and returns those that have run unjudged.
func (a *Activity) EndTurn() []Finding {
	found := a.open(func(c *reportedCall) bool { return !c.running.IsZero() })
	for _, c := range a.calls {
		a.end(c)
	}
	a.did = nil
	return found
}

// open returns those of the open calls that are unjudged, in the order of their ids.
func (a *Activity) open(include func(*reportedCall) bool) (found []Finding) {
	for _, id := range slices.Sorted(maps.Keys(a.calls)) {
		if c := a.calls[id]; !c.ended && include(c) {
			if f := a.settle(c); f != nil {
				found = append(found, *f)
			}
		}
	}
	return found
}

func subset(list, of []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(of, s) })
}
