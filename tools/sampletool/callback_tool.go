package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// modes are how a call can be answered; several at once are joined by +.
var modes = []string{
	"plain",     // once, after the delay
	"duplicate", // three times, at the same time
	"forge",     // after answers without a token, or with another one
	"foreign",   // after answers at the address of another call, and with its ids here
	"conflict",  // and then once more, otherwise
	"early",     // before the call is acknowledged
	"late",      // after the time that late calls take
	"held",      // when told to, by POST /later/release
	"never",
	"fail", // with an error
}

// mostUnderway bounds how many calls are being answered.
const mostUnderway = 20_000

// later takes calls, and answers them by calling back. It is safe for concurrent
// use.
type later struct {
	as          []string      // how a call is answered that does not say
	delay, wait time.Duration // before an answer, and before a late one
	posts       *posts
	ctx         context.Context // of all answers

	mu       sync.Mutex
	last     *invocation // the call before
	released chan struct{}
	held     int
	underway sync.WaitGroup
	count    int // of those under way
	taken    int
}

func newLater(ctx context.Context, as []string, delay, wait, patience time.Duration) *later {
	return &later{as: as, delay: delay, wait: wait, posts: newPosts(patience), ctx: ctx, released: make(chan struct{})}
}

// mount puts what is of it beside the other tools.
func (l *later) mount(h router) {
	h.status["/.well-known/rap-toolset"] = l.toolset
	h.status["/later/report"] = reading(l.report)
	for _, t := range []tool{{"/later", l.accept}, {"/later/release", l.release}, {"/cancel_tool_call", acknowledge},
		{"/close_thread", acknowledge}} {
		h.tools[t.path] = t.handler(h.stderr)
	}
}

// parseModes reads modes that are joined.
func parseModes(text string) ([]string, error) {
	all := strings.Split(text, "+")
	for _, m := range all {
		if !slices.Contains(modes, m) {
			return nil, fmt.Errorf("found the mode %q; expected some of %s, joined by +", m, strings.Join(modes, ", "))
		}
	}
	return all, nil
}

// invocation is a call as it came.
type invocation struct {
	Operation string
	Arguments json.RawMessage
	ID        string
	URL       string
	Group     string
	Ancestors []string
	User      string
}

// message is what a call is answered with.
type message struct {
	Type    string `json:"type"`
	Group   string `json:"group_id"`
	ID      string `json:"id"`
	Text    string `json:"text"`
	Display []any  `json:"display_as,omitempty"`
}

func (i *invocation) answer(text string) message {
	return message{Type: "tool_result", Group: i.Group, ID: i.ID, Text: text}
}

// toolset is what GET /.well-known/rap-toolset answers.
func (l *later) toolset(w http.ResponseWriter, r *http.Request) {
	schema := map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"n":  map[string]any{"type": "integer"},
			"as": map[string]any{"type": "string", "maxLength": 100},
		},
	}
	answer(w, http.StatusOK, map[string]any{
		"name": "sampletool", "description": "Answers later.", "endpoint": "http://" + r.Host + "/later",
		"tools": []any{map[string]any{"name": "answer", "description": "Returns n, later.", "inputSchema": schema}},
	})
}

// accept is the tool /later. It acknowledges a call, and answers it beside.
func (l *later) accept(_ context.Context, body []byte) (any, error) {
	var i invocation
	text := func(name string, into *string, required bool) argument {
		return argument{name: name, into: into, expected: "text", required: required}
	}
	err := decode(body,
		text("operation", &i.Operation, true), text("id", &i.ID, true), text("callback_url", &i.URL, true),
		text("group_id", &i.Group, true), text("user_id", &i.User, false),
		argument{name: "arguments", into: &i.Arguments, expected: "an object", required: true},
		argument{name: "thread_ancestors", into: &i.Ancestors, expected: "a list of texts"},
	)
	if err != nil {
		return nil, err
	}
	n, as, err := l.arguments(&i)
	conduct := func(before *invocation) { l.conduct(&i, before, n, as) }
	if err != nil {
		// The call is acknowledged by now, so its fault is its answer.
		conduct = func(*invocation) { l.posts.send(l.ctx, "refused", i.URL, i.answer("Error: "+err.Error())) }
	}
	l.mu.Lock()
	if l.count >= mostUnderway {
		l.mu.Unlock()
		return nil, failed(http.StatusServiceUnavailable, "too many calls are being answered")
	}
	l.count++
	l.taken++
	before := l.last
	l.last = &i
	l.underway.Add(1)
	l.mu.Unlock()
	end := func() {
		l.mu.Lock()
		l.count--
		l.mu.Unlock()
		l.underway.Done()
	}
	if slices.Contains(as, "early") {
		defer end()
		conduct(before)
		return struct{}{}, nil
	}
	go func() {
		defer end()
		conduct(before)
	}()
	return struct{}{}, nil
}

// arguments reads the arguments of a call.
func (l *later) arguments(i *invocation) (n whole, as []string, err error) {
	if i.Operation != "answer" {
		return 0, nil, fmt.Errorf("there is no such operation; expected answer")
	}
	var mode string
	if err := decode(i.Arguments,
		argument{name: "n", into: &n, expected: "a whole number"},
		argument{name: "as", into: &mode, expected: "modes"},
	); err != nil {
		return 0, nil, err
	}
	if mode == "" {
		return n, l.as, nil
	}
	as, err = parseModes(mode)
	return n, as, err
}

// conduct answers a call in its modes.
func (l *later) conduct(i, before *invocation, n whole, as []string) {
	is := func(mode string) bool { return slices.Contains(as, mode) }
	wait := l.delay
	if is("late") {
		wait = l.wait
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-l.ctx.Done():
			return
		}
	}
	if is("held") && !l.hold() || is("never") {
		return
	}
	if is("forge") {
		l.forge(i)
	}
	if is("foreign") && before != nil {
		l.posts.send(l.ctx, "foreign", before.URL, i.answer(`{"forged":true}`))
		l.posts.send(l.ctx, "foreign", i.URL, before.answer(`{"forged":true}`))
	}
	good := i.answer(fmt.Sprintf(`{"n":%d,"ok":true}`, n))
	good.Display = []any{map[string]string{"type": "text", "content": fmt.Sprintf("number %d", n)}}
	if is("fail") {
		good.Text = fmt.Sprintf("Error: number %d is out of order.", n)
	}
	kind := "answer"
	if is("late") {
		kind = "late"
	}
	times := 1
	if is("duplicate") {
		times = 3
	}
	var all sync.WaitGroup
	for at := range times {
		all.Go(func() {
			kind := kind
			if at > 0 {
				kind = "duplicate"
			}
			l.posts.send(l.ctx, kind, i.URL, good)
		})
	}
	all.Wait()
	if is("conflict") {
		l.posts.send(l.ctx, "conflict", i.URL, i.answer(fmt.Sprintf(`{"n":%d,"forged":true}`, n)))
	}
}

// forge posts what nobody may believe.
func (l *later) forge(i *invocation) {
	at := strings.LastIndexByte(i.URL, '/') + 1
	base, token := i.URL[:at], i.URL[at:]
	middle := len(token) / 2
	other := byte('A')
	if token[middle] == other {
		other = 'B'
	}
	forged := i.answer(`{"forged":true}`)
	l.posts.send(l.ctx, "forged", base+token[:middle]+string(other)+token[middle+1:], forged)
	l.posts.send(l.ctx, "forged", base+"AAAA"+token[4:], forged)
	l.posts.send(l.ctx, "forged", base+i.ID, forged)
	wrong := forged
	wrong.ID = "call_of_nobody"
	l.posts.send(l.ctx, "forged", i.URL, wrong)
	wrong = forged
	wrong.Group += "x"
	l.posts.send(l.ctx, "forged", i.URL, wrong)
}

// hold waits until calls are released; it is false where none will be.
func (l *later) hold() bool {
	l.mu.Lock()
	released := l.released
	l.held++
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held--
	}()
	select {
	case <-released:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// release lets the calls that are held be answered.
func (l *later) release(context.Context, []byte) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.released)
	l.released = make(chan struct{})
	return map[string]int{"released": l.held}, nil
}

// report is what GET /later/report answers.
func (l *later) report() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return struct {
		Taken    int                       `json:"taken"`
		Underway int                       `json:"underway"`
		Held     int                       `json:"held"`
		Posts    map[string]map[string]int `json:"posts"` // by what they are, and how they were answered
		Retries  int                       `json:"retries"`
	}{l.taken, l.count, l.held, l.posts.report(), l.posts.retried()}
}

// acknowledge answers a notification.
func acknowledge(context.Context, []byte) (any, error) { return struct{}{}, nil }
