package acptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/internal/rawjson"
)

// Entry is one line of a transcript.
type Entry struct {
	From   Side
	Line   string
	Method string // of a response, that of its request
	Kind   string // request, notification, result or error
}

// Recorder keeps the lines of one connection in the order in which they passed, and what is
// wrong with them. A line that is wrong is a fault of the side that sent it.
type Recorder struct {
	schemas *schemas
	ours    [2]bool

	mu     sync.Mutex
	lines  []Entry
	faults [2][]error           // by the side at fault
	open   [2]map[string]string // by the side that asked and the id: the method
	rules  *rules
}

// NewRecorder returns a Recorder for a connection. The sides that are ours are held against
// the letter of the schema and against the rules of the protocol that no schema can state;
// a foreign one against the schema alone, which lets unknown members pass.
func NewRecorder(t testing.TB, ours ...Side) *Recorder {
	t.Helper()
	return newRecorder(readSchemas(t), ours...)
}

func newRecorder(s *schemas, ours ...Side) *Recorder {
	r := &Recorder{schemas: s, open: [2]map[string]string{{}, {}}, rules: newRules()}
	for _, side := range ours {
		r.ours[side] = true
	}
	return r
}

// Foreign has a side be no longer one that is ours: a test sends what no client may.
func (r *Recorder) Foreign(side Side) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ours[side] = false
}

// Writer passes on to w, and records the lines of it as sent by a side.
func (r *Recorder) Writer(from Side, w io.Writer) io.Writer {
	return &tap{record: func(line []byte) { r.Record(from, line) }, w: w}
}

// Reader reads from in, and records the lines of it as sent by a side.
func (r *Recorder) Reader(from Side, in io.Reader) io.Reader {
	return io.TeeReader(in, &tap{record: func(line []byte) { r.Record(from, line) }, w: io.Discard})
}

// tap records whole lines before it passes them on, so that no answer to a line is recorded
// before it.
type tap struct {
	record func(line []byte)
	w      io.Writer
	rest   []byte
}

func (t *tap) Write(b []byte) (int, error) {
	t.rest = append(t.rest, b...)
	for {
		line, rest, ended := bytes.Cut(t.rest, []byte("\n"))
		if !ended {
			return t.w.Write(b)
		}
		t.record(line)
		t.rest = bytes.Clone(rest)
	}
}

// Record takes one line without its end.
func (r *Recorder) Record(from Side, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Entry{From: from, Line: string(line)}
	err := r.read(&e, line)
	r.lines = append(r.lines, e)
	if err != nil {
		r.fault(from, e.Method, err)
	}
}

func (r *Recorder) fault(from Side, method string, err error) {
	r.faults[from] = append(r.faults[from], fmt.Errorf("line %d, %s, %q: %w", len(r.lines), from, method, err))
}

// Lines is the transcript so far.
func (r *Recorder) Lines() []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Entry(nil), r.lines...)
}

// Faults are the faults of a side so far.
func (r *Recorder) Faults(side Side) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.faults[side]...)
}

// Ended says that the connection has ended in order: each request of the sides that are ours
// and each to them is answered, and nothing is held that must be given back.
func (r *Recorder) Ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for side, open := range r.open {
		for id, method := range open {
			if answerer := Side(side).other(); r.ours[answerer] {
				r.fault(answerer, method, fmt.Errorf("the request %s has no answer", id))
			}
		}
	}
	if r.ours[Agent] {
		for _, err := range r.rules.unreleased() {
			r.fault(Agent, "", err)
		}
	}
}

// Check fails a test for each fault of the sides that are ours, and then shows the
// transcript.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	failed := false
	for side, ours := range r.ours {
		if !ours {
			continue
		}
		for _, err := range r.Faults(Side(side)) {
			t.Error(err)
			failed = true
		}
	}
	if failed {
		lines := r.Lines()
		for i, e := range lines {
			if i >= maxShown/2 && i < len(lines)-maxShown/2 {
				continue
			}
			t.Logf("%4d %s %.2000s", i+1, map[Side]string{Client: "→", Agent: "←"}[e.From], e.Line)
		}
	}
}

// Seen counts the messages of a transcript by sender, kind and method, as in
// "agent result session/new"; updates and stop reasons are told apart.
func (r *Recorder) Seen() map[string]int {
	seen := map[string]int{}
	for _, e := range r.Lines() {
		name := e.From.String() + " " + e.Kind + " " + e.Method
		seen[name]++
		var m struct {
			Params struct {
				Update struct {
					Kind   string `json:"sessionUpdate"`
					Status string `json:"status"`
				} `json:"update"`
			} `json:"params"`
			Result struct {
				Stop string `json:"stopReason"`
			} `json:"result"`
		}
		if json.Unmarshal([]byte(e.Line), &m) != nil {
			continue
		}
		if kind := m.Params.Update.Kind; kind != "" {
			seen[strings.TrimSpace(name+" "+kind+" "+m.Params.Update.Status)]++
		}
		if m.Result.Stop != "" {
			seen[name+" "+m.Result.Stop]++
		}
	}
	return seen
}

// maxShown bounds the lines that a test which fails shows: the first, and the last.
const maxShown = 60

// maxDepth is deeper than any message of a test.
const maxDepth = 200

// read reads one line, and fills the entry as far as it goes.
func (r *Recorder) read(e *Entry, line []byte) error {
	if bytes.ContainsAny(line, "\r\n") {
		return errors.New("a line ends within a message")
	}
	if !utf8.Valid(line) {
		return errors.New("this is no UTF-8")
	}
	m, err := rawjson.ReadMap(line, maxDepth)
	if err != nil {
		return err
	}
	if !r.ours[e.From] && m["method"] != nil && m["id"] != nil {
		// However wrong it is, it may be answered.
		if id, err := readID(m["id"]); err == nil {
			defer func() {
				if _, open := r.open[e.From][id]; !open {
					r.open[e.From][id] = e.Method
				}
			}()
		}
	}
	for name := range m {
		if !strings.Contains(" jsonrpc id method params result error ", " "+name+" ") {
			return fmt.Errorf("a message has no member %q", name)
		}
	}
	if string(m["jsonrpc"]) != `"2.0"` {
		return fmt.Errorf("jsonrpc is %s, expected \"2.0\"", m["jsonrpc"])
	}
	if method, ok := m["method"]; ok {
		if m["result"] != nil || m["error"] != nil {
			return errors.New("a message with a method is no answer")
		}
		if err := json.Unmarshal(method, &e.Method); err != nil {
			return fmt.Errorf("method: %w", err)
		}
		return r.sent(e, m)
	}
	return r.answered(e, m)
}

// sent reads a request or a notification.
func (r *Recorder) sent(e *Entry, m map[string]json.RawMessage) error {
	params := m["params"]
	if params == nil {
		params = json.RawMessage("{}")
	}
	id, definitions := "", r.schemas.notifications[e.From]
	e.Kind = "notification"
	if written, request := m["id"]; request {
		e.Kind = "request"
		definitions = r.schemas.requests[e.From]
		var err error
		if id, err = readID(written); err != nil {
			return err
		}
		if method, open := r.open[e.From][id]; open {
			return fmt.Errorf("the id %s is that of an open request of %s", id, method)
		}
		r.open[e.From][id] = e.Method
	}
	definition, known := definitions[e.Method]
	if !known {
		return fmt.Errorf("the schema has no %s of that method from this side", e.Kind)
	}
	if err := r.schemas.check(r.ours[e.From], definition, params); err != nil {
		return err
	}
	err := r.rules.sent(e.From, e.Method, id, params)
	if !r.ours[e.From] {
		return nil
	}
	return err
}

// answered reads a result or an error.
func (r *Recorder) answered(e *Entry, m map[string]json.RawMessage) error {
	written, identified := m["id"]
	result, succeeded := m["result"]
	failure, failed := m["error"]
	if !identified || succeeded == failed || m["params"] != nil {
		return errors.New("this is no request, no notification, no result and no error")
	}
	e.Kind = "result"
	if failed {
		e.Kind = "error"
		if err := r.schemas.check(r.ours[e.From], "Error", failure); err != nil {
			return err
		}
		if string(written) == "null" { // the request's own could not be read
			return nil
		}
	}
	id, err := readID(written)
	if err != nil {
		return err
	}
	method, open := r.open[e.From.other()][id]
	if !open {
		return fmt.Errorf("no request waits for the id %s", id)
	}
	e.Method = method
	delete(r.open[e.From.other()], id)
	if !failed {
		definition, known := r.schemas.results[method]
		if !known {
			return fmt.Errorf("the schema has no result of %s", method)
		}
		if err := r.schemas.check(r.ours[e.From], definition, result); err != nil {
			return err
		}
	}
	err = r.rules.answered(e.From, method, id, result)
	if !r.ours[e.From] {
		return nil
	}
	return err
}

// readID reads an id, a text or a whole number, in one spelling.
func readID(written json.RawMessage) (string, error) {
	var text string
	if err := json.Unmarshal(written, &text); err == nil && string(written) != "null" {
		return strconv.Quote(text), nil
	}
	if _, err := strconv.ParseInt(string(written), 10, 64); err != nil {
		return "", fmt.Errorf("the id is %s, expected a text or a whole number", written)
	}
	return string(written), nil
}
