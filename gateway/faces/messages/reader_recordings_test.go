package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// recordedCall is a call that an assembler of its own has found.
type recordedCall struct{ ID, Name, Arguments, Kind, Caller string }

func (c recordedCall) String() string {
	return fmt.Sprintf("%s %s %s %s", c.Kind, c.ID, c.Name, compact([]byte(c.Arguments)))
}

type recordedStream struct {
	File, Style, Finish string
	Expected            []recordedCall `json:"expected_calls"`
	Blocks, Notes       []string
}

// compact removes the space between the tokens of JSON. No input is {}.
func compact(input []byte) string {
	if len(input) == 0 {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, input) != nil {
		return string(input)
	}
	return b.String()
}

func foundCalls(r *turns.Reply) []string {
	var found []string
	for _, b := range r.Answers[0].Parts {
		if b.Call.ID != "" {
			found = append(found, fmt.Sprintf("%s %s %s %s", b.Type, b.Call.ID, b.Call.Name, compact(b.Call.Arguments)))
		}
	}
	return found
}

func recordings(t *testing.T) []recordedStream {
	if !corpora.Whole("face_recordings") {
		t.Skip("the corpus face_recordings is not here")
	}
	all := corpora.Lines[recordedStream](t, corpora.Path(t, "face_recordings", "sse_streams", "index.jsonl"))
	return slices.DeleteFunc(all, func(r recordedStream) bool { return r.Style != "anthropic" })
}

// TestRecordedStreams reads every recorded stream in pieces of every kind: the calls are those
// that another assembler has found, and what a client would be sent gives the same reply.
func TestRecordedStreams(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.File, func(t *testing.T) {
			b, err := os.ReadFile(corpora.Path(t, "face_recordings", "sse_streams", r.File))
			if err != nil {
				t.Fatal(err)
			}
			got := readStream(bytes.NewReader(b), options{})
			if slices.Contains(r.Notes, "a second message_start") {
				if got.err == nil {
					t.Fatal("a second message_start was accepted")
				}
				return
			}
			if got.err != nil {
				t.Fatal(got.err)
			}
			var want []string
			for _, c := range r.Expected {
				want = append(want, c.String())
			}
			if found := foundCalls(got.reply); !slices.Equal(found, want) {
				t.Fatalf("found %q, expected %q", found, want)
			}
			if got.reply.Answers[0].Reason != r.Finish {
				t.Errorf("stop_reason %s, expected %s", got.reply.Answers[0].Reason, r.Finish)
			}
			if strings.Contains(got.shown, `"type":"tool_use"`) {
				t.Error("a call of the client was shown")
			}
			same := func(how string, other reading) {
				t.Helper()
				if other.err != nil || describe(other.reply) != describe(got.reply) || other.shown != got.shown {
					t.Fatalf("%s: another reply: %v", how, other.err)
				}
			}
			same("byte by byte", readStream(iotest.OneByteReader(bytes.NewReader(b)), options{}))
			random := rand.New(rand.NewPCG(1, uint64(len(b))))
			for range 5 {
				cuts := make([]int, 97)
				for i := range cuts {
					cuts[i] = 1 + random.IntN(60)
				}
				same("at random", readStream(&pieces{data: b, cuts: cuts}, options{}))
			}
			if r.Finish == "max_tokens" && len(callsOf(got.reply)) > 0 {
				return // its input is cut off, and no JSON
			}
			message, err := readWhole(whole(got.reply), options{})
			if err != nil {
				t.Fatalf("as one message: %v", err)
			}
			sent := readStream(strings.NewReader(got.asSent(t)), options{})
			if sent.err != nil {
				t.Fatalf("as sent: %v", sent.err)
			}
			if describe(message) != describe(sent.reply) || describe(message) != describe(got.reply) {
				t.Errorf("streamed:\n%s\nas sent:\n%s\nwhole:\n%s", describe(got.reply), describe(sent.reply), describe(message))
			}
		})
	}
}

// TestRecordedStreamsBrokenOff breaks recordings off: nothing without the event with the reason is a
// reply, and no byte of a call is shown before.
func TestRecordedStreamsBrokenOff(t *testing.T) {
	for _, r := range recordings(t) {
		b, err := os.ReadFile(corpora.Path(t, "face_recordings", "sse_streams", r.File))
		if err != nil {
			t.Fatal(err)
		}
		end := bytes.LastIndex(b, []byte("message_delta"))
		if end < 0 {
			end = bytes.LastIndex(b, []byte("message_start"))
		}
		for at := 0; at < end; at += max(1, len(b)/60) {
			got := readStream(bytes.NewReader(b[:at]), options{})
			if got.err == nil {
				t.Fatalf("%s, broken off at %d: a reply came of it", r.File, at)
			}
			if strings.Contains(got.shown, `"type":"tool_use"`) {
				t.Fatalf("%s, broken off at %d: a call was shown", r.File, at)
			}
		}
	}
}

// TestRecordedExchanges reads every recorded message.
func TestRecordedExchanges(t *testing.T) {
	if !corpora.Whole("face_recordings") {
		t.Skip("the corpus face_recordings is not here")
	}
	type exchange struct {
		ID, Style, Finish string
		Calls             []recordedCall
		Response          json.RawMessage
	}
	read := 0
	for _, e := range corpora.Lines[exchange](t, corpora.Path(t, "face_recordings", "exchanges.jsonl")) {
		if e.Style != "anthropic" {
			continue
		}
		read++
		r, err := readWhole(e.Response, options{})
		if err != nil {
			t.Errorf("%s: %v", e.ID, err)
			continue
		}
		var want []string
		for _, c := range e.Calls {
			want = append(want, c.String())
		}
		if found := foundCalls(r); !slices.Equal(found, want) || r.Answers[0].Reason != e.Finish {
			t.Errorf("%s: found %q and %s, expected %q and %s", e.ID, found, r.Answers[0].Reason, want, e.Finish)
		}
		if r.Answers[0].RefuseCalls != nil { // it is not passed on
			continue
		}
		again, err := readWhole(whole(r), options{})
		if err != nil || describe(again) != describe(r) {
			t.Errorf("%s: the message as it is passed on is another: %v", e.ID, err)
		}
	}
	if read < 400 {
		t.Errorf("found %d messages", read)
	}
}
