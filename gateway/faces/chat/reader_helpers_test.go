package chat

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/upstream"
)

// readStream reads a stream as a run does.
func readStream(from io.Reader) (*turns.Reply, error) {
	events := sse.Reader{Source: from, MaxBytes: 1 << 20, Last: upstream.IsDone}
	r := &reader{}
	for {
		if _, _, at := r.State(); at == turns.Ended {
			break
		}
		name, data, err := events.Next()
		if errors.Is(err, sse.ErrEnd) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(data) == 0 && string(name) != "error" {
			continue
		}
		if _, err := r.Event(name, data); err != nil {
			return nil, err
		}
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return r.Reply(), nil
}

// readChunks reads chunks, then [DONE].
func readChunks(chunks ...string) (*turns.Reply, error) {
	return readStream(strings.NewReader("data: " + strings.Join(append(chunks, "[DONE]\n\n"), "\n\ndata: ")))
}

func readWhole(body string) (*turns.Reply, error) {
	r := &reader{}
	err := r.Whole([]byte(body))
	return r.Reply(), err
}

// callsOf are the calls of the first answer, as id:name:arguments. An id that was given here is none.
func callsOf(r *turns.Reply) (calls []string) {
	for _, p := range r.Answers[0].Parts {
		if p.Kind == turns.Call {
			calls = append(calls, ownID(p)+":"+p.Call.Name+":"+string(p.Call.Arguments))
		}
	}
	return calls
}

func ownID(p *turns.Part) string {
	if own, ok := strings.CutPrefix(p.Call.ID, "call_"); ok && len(own) == 26 && strings.Trim(own, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
		return ""
	}
	return p.Call.ID
}

// partOf is the first part of a row, or nil.
func partOf(a *turns.Answer, row *turns.Row) *turns.Part {
	for _, p := range a.Parts {
		if p.Row == row {
			return p
		}
	}
	return nil
}

// lookup is the value of a member, also if it is null.
func lookup(o rawjson.Object, name string) string {
	for _, m := range o {
		if m.Name == name {
			return string(m.Value)
		}
	}
	return ""
}

// described is a reply without pointers, to compare.
func described(r *turns.Reply) string {
	members := func(o rawjson.Object) string { return string(o.Bytes()) }
	out := fmt.Sprintf("%s %s %d %s %+v", r.ID, r.Model, r.Created, members(r.Head), r.Usage)
	for _, a := range r.Answers {
		out += fmt.Sprintf("\n%d %d %q %s", a.Index, a.End, a.Reason, members(a.Beside))
		for _, p := range a.Parts {
			out += fmt.Sprintf(" %s(%q %t %s %s %q %s)", p.Type, p.Text, p.Text == nil, ownID(p), p.Call.Name, p.Call.Arguments, members(p.Beside))
		}
	}
	return out
}
