package acpproxy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/refusal"
)

// phase is where a session stands.
type sessionState int

const (
	replaying sessionState = iota // it is loaded: its updates are history
	open
	closed
)

// session is one session of the agent, as the proxy sees it.
type session struct {
	id  string
	cwd string // where relative paths of reports start
	// ctx ends with the session.
	ctx   context.Context
	leave context.CancelFunc

	mu        sync.Mutex
	state     sessionState
	turn      *turn // nil between prompts
	terminals map[string]bool
	activity  *attribution.Activity
	inFlight  int // requests of the agent that are being judged
	closing   bool
	modes     offeredModes

	// passing is held while an update passes; it is taken before mu. OpenQuestions counts those that
	// the user has not answered, by the ids of their tool calls.
	passing       sync.Mutex
	openQuestions map[string]int
	introduced    map[string]bool // ids of calls of the gateway's own that the editor sees as open
}

// turn is one prompt until its answer.
type turn struct {
	ctx       context.Context // ends when the turn is cancelled or over
	cancel    context.CancelFunc
	cancelled bool           // by the user
	withdrawn bool           // by $/cancel_request, which may be answered with an error
	stopped   *refusal.Error // why the proxy has cancelled it
	overtime  *time.Timer    // until the agent is ended, once the proxy has cancelled the turn
	approved  []approvedEdit // changes of files that the user has approved, and the agent has not made
}

func newSession(id string, p sessionState) *session {
	ctx, leave := context.WithCancel(context.Background())
	return &session{id: id, ctx: ctx, leave: leave, state: p, terminals: map[string]bool{}, activity: attribution.New(),
		openQuestions: map[string]int{}, introduced: map[string]bool{}}
}

// begin begins a turn.
func (s *session) begin(ctx context.Context) *refusal.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != open:
		return unknownSession()
	case s.turn != nil:
		return refusal.New(refusal.BadRequest, "The prompt before is still being answered: wait for its answer, or cancel it.")
	}
	s.activity.BeginTurn()
	s.turn = &turn{}
	s.turn.ctx, s.turn.cancel = context.WithCancel(ctx)
	return nil
}

// end ends the turn, and returns it and the calls of it that have run unjudged.
func (s *session) end() (*turn, []attribution.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turn
	if t == nil {
		return &turn{}, nil
	}
	s.turn = nil
	t.cancel()
	if t.overtime != nil {
		t.overtime.Stop()
	}
	return t, s.activity.EndTurn()
}

func (s *session) inTurn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil
}

// openIntroduced are the calls of the gateway's own that the editor sees as open.
func (s *session) openIntroduced() []string {
	s.passing.Lock()
	defer s.passing.Unlock()
	return slices.Collect(maps.Keys(s.introduced))
}

// cancel ends what waits in the turn, because the user has cancelled it.
func (s *session) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		s.turn.cancelled, s.turn.withdrawn = true, false
		s.turn.cancel()
	}
}

// withdraw is cancel for a user who has cancelled the request of the prompt.
func (s *session) withdraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.turn; t != nil && !t.cancelled {
		t.cancelled, t.withdrawn = true, true
		t.cancel()
	}
}

// stop cancels the turn for a reason of the proxy, and calls late unless the agent has ended it
// within a time. It reports whether there is a turn, and whether this is the first reason.
func (s *session) stop(why *refusal.Error, within time.Duration, late func()) (running, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turn
	if t == nil {
		return false, false
	}
	if t.stopped != nil {
		return true, false
	}
	t.stopped, t.overtime = why, time.AfterFunc(within, late)
	t.cancel()
	return true, true
}

// close ends the session, and returns the calls that have run unjudged.
func (s *session) close() []attribution.Finding {
	_, found := s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = closed
	s.leave()
	return found
}

// setClosing says whether the editor has asked for the end of the session, and the agent has not
// answered.
func (s *session) setClosing(closing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = closing
}

// opened says that the session can take prompts.
func (s *session) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.activity = open, attribution.New()
}

// enter begins a request of the agent, where the state of the session lets it pass. Its context
// ends with the turn. Every caller that entered must leave.
//
//	terminal/output, wait_for_exit, kill, release   while the session is open, or being closed
//	fs/read_text_file                               and no turn was cancelled
//	the others                                      in a turn that was not cancelled
func (s *session) enter(ctx context.Context, method string) (_ context.Context, leave func(), _ *refusal.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.turn
	switch {
	case s.state == closed:
		return nil, nil, unknownSession()
	case slices.Contains(ofTerminals, method):
		t = nil
	case s.closing:
		return nil, nil, unknownSession()
	case t == nil && (s.state != open || method != wire.MethodReadTextFile):
		return nil, nil, refusal.New(refusal.BadRequest,
			"No prompt is being answered in this session, so nothing may act for it. Nothing was executed.")
	case t != nil && t.stopped != nil:
		return nil, nil, t.stopped
	case t != nil && t.cancelled:
		return nil, nil, cancelledTurn()
	}
	ctx, cancel := context.WithCancel(ctx)
	stopOver := context.AfterFunc(s.ctx, cancel)
	stop := func() bool { return true }
	if t != nil {
		stop = context.AfterFunc(t.ctx, cancel)
	}
	s.inFlight++
	return ctx, func() {
		stop()
		stopOver()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inFlight--
	}, nil
}

// ofTerminals are the methods of a terminal that exists.
var ofTerminals = []string{wire.MethodTerminalOutput, wire.MethodTerminalWaitForExit, wire.MethodTerminalKill, wire.MethodTerminalRelease}

// report takes what the agent reports of a tool call.
func (s *session) report(r attribution.Report, announces bool, now time.Time) *attribution.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == replaying {
		return nil // history
	}
	return s.activity.Report(r, announces, now)
}

// completePaths makes the paths of a reported tool call absolute.
func (s *session) completePaths(id string, d wire.ToolDetails) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range d.Locations {
		d.Locations[i].Path = s.activity.Path(id, d.Locations[i].Path, s.cwd)
	}
	for i := range d.Content {
		if d.Content[i].Type == wire.Diff {
			d.Content[i].Path = s.activity.Path(id, d.Content[i].Path, s.cwd)
		}
	}
}

// described is the tool call of a request for permission, with what was reported of it before.
func (s *session) described(r attribution.Report) (attribution.Report, *attribution.Finding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.activity.Described(r)
}

func (s *session) permissionAnswered(judged attribution.Report, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.PermissionAnswered(judged, allowed)
}

// reported is the tool call that the agent has reported for a request; empty where no one is it.
func (s *session) reported(method, path, command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.activity.Reported(method, path, command)
}

func (s *session) judged(method, path, terminal string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity.Judged(method, path, terminal, refused)
}

// overdue returns the calls that run unjudged for some time, while nothing is being judged.
func (s *session) overdue(since time.Time) []attribution.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight > 0 || s.state != open {
		return nil
	}
	return s.activity.Overdue(since)
}

// addTerminal takes a terminal that was created through the gate, and reports whether the session
// is still there to have it.
func (s *session) addTerminal(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return false
	}
	s.terminals[id] = true
	return true
}

func (s *session) hasTerminal(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terminals[id]
}

func (s *session) dropTerminal(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.terminals, id)
}

// sessions are the sessions of a connection.
type sessions struct {
	mu  sync.Mutex
	all map[string]*session
}

// maxSessions bounds the sessions that are open at a time.
const maxSessions = 256

func (t *sessions) get(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

// add adds a session, or returns why not.
func (t *sessions) add(s *session) *refusal.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.all[s.id] != nil:
		return refusal.New(refusal.BadRequest, "A session of this id is open already.")
	case len(t.all) >= maxSessions:
		return refusal.New(refusal.Overloaded, "Too many sessions are open: close one first.")
	}
	if t.all == nil {
		t.all = map[string]*session{}
	}
	t.all[s.id] = s
	return nil
}

func (t *sessions) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, id)
}

func (t *sessions) list() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*session, 0, len(t.all))
	for _, s := range t.all {
		list = append(list, s)
	}
	return list
}

// show notes what the editor was shown; nil leaves it as it is.
func (s *session) show(modes *wire.ModeState, options []wire.ConfigOption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if modes != nil {
		s.modes.modes = nil
		for _, m := range modes.AvailableModes {
			s.modes.modes = append(s.modes.modes, m.ID)
		}
	}
	if options != nil {
		s.modes.options = options
	}
}

func (s *session) offered() offeredModes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.modes
}

// showing says that the user is being asked about a call until the function is called.
func (s *session) showing(callID string) (answered func()) {
	s.passing.Lock()
	defer s.passing.Unlock()
	s.openQuestions[callID]++
	return func() {
		s.passing.Lock()
		defer s.passing.Unlock()
		if s.openQuestions[callID]--; s.openQuestions[callID] == 0 {
			delete(s.openQuestions, callID)
		}
	}
}

// duringPermission is what passes of an update: of a call that the user is being asked about the status
// alone, and nothing where it has none; under s.passing.
func (s *session) duringPermission(u wire.Update) (wire.Update, bool) {
	id, status := "", wire.ToolStatus("")
	switch u := u.(type) {
	case wire.ToolCall:
		id, status = u.ToolCallID, u.Status
	case wire.ToolCallUpdate:
		id, status = u.ToolCallID, u.Status
	}
	if s.openQuestions[id] == 0 {
		return u, true
	}
	return wire.ToolCallUpdate{ToolCallID: id, ToolDetails: wire.ToolDetails{Status: status}}, status != ""
}
