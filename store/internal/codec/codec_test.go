package codec

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
)

func sample() store.Call {
	return store.Call{
		ID: "1", Scope: store.Scope{Principal: "p", Workspace: "w", Project: "q"}, Key: "k", Digest: "d", State: store.Unknown, Step: store.Ended, Owner: "o", DecidedBy: "node", Attempts: 3,
		Task: store.Task{
			Tool: "tool", Version: "1.0.0", Agent: "Analyst", Effect: "once", Arguments: []byte(`{"a":1}`),
			Caller: "caller", RequestID: "request", Trace: "trace", Thread: "thread", Input: "input", Config: "config",
			Group: "group", Ledger: "ledger", Using: []string{"call_A", "grant_B"},
		},
		Opened: time.UnixMilli(1), Until: time.UnixMilli(2), Ended: time.UnixMilli(1 << 41), Delivered: true, DeliveredByEnding: true, Metadata: []byte("n"), FinishedBy: "a",
		Counted: store.Counted{Turn: 1 << 50, Adds: []string{"at:2026-11-28T19:30:00Z", "label:untrusted"}},
		Answer:  store.Answer{Status: 200},
	}
}

// Every field of a call is written down and read again: a new one that the codec
// does not know is found here. Spends alone is for the dispatch, and over with it.
func TestEveryFieldIsKept(t *testing.T) {
	c := sample()
	for _, v := range []any{c, c.Task, c.Scope} {
		for i := range reflect.TypeOf(v).NumField() {
			if name := reflect.TypeOf(v).Field(i).Name; reflect.ValueOf(v).Field(i).IsZero() && name != "Spends" {
				t.Errorf("the sample does not say %s", name)
			}
		}
	}
	for _, delivered := range [][2]bool{{true, true}, {true, false}, {false, false}} {
		c.Delivered, c.DeliveredByEnding = delivered[0], delivered[1]
		if got, err := DecodeCall(EncodeCall(c)); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// A call that was written down before there were notes is read.
func TestRecordOfVersion1(t *testing.T) {
	c := sample()
	c.Metadata, c.Task.Using, c.Task.Group, c.Task.Ledger, c.DecidedBy, c.Counted = nil, nil, "", "", "", store.Counted{}
	f := fieldCodec{out: []byte{codecVersion}, version: codecVersion}
	f.call(&c)
	if got, err := DecodeCall(appendChecksum(f, 0)); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNoByteOfARecordMayChange(t *testing.T) {
	whole := EncodeCall(sample())
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 4
		if _, err := DecodeCall(b); err == nil {
			t.Errorf("byte %d was changed, and nobody saw it", i)
		}
		if _, err := DecodeCall(whole[:i]); err == nil {
			t.Errorf("cut at %d, and nobody saw it", i)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(EncodeCall(sample()))
	f.Fuzz(func(t *testing.T, b []byte) {
		sealed := appendChecksum(fieldCodec{out: bytes.Clone(b)}, 0)
		for _, in := range [][]byte{b, sealed} {
			c, err := DecodeCall(in)
			if err != nil {
				continue
			}
			second, err := DecodeCall(EncodeCall(c))
			if err != nil || !reflect.DeepEqual(second, c) {
				t.Errorf("%+v became %+v, %v", c, second, err)
			}
		}
	})
}
