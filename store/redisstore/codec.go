package redisstore

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/internal/codec"
)

var errForeignReply = errors.New("Redis answers with something that Callgate has not written")

// kinds are what the keys of records begin with.
var kinds = [...]string{
	store.CallRecord: "call:", store.KeyRecord: "key:", store.AskRecord: "ask:", store.QuestionRecord: "question:",
	store.GrantRecord: "grant:", store.LeaseRecord: "lease:", store.StopsRecord: "stops:", store.ThreadRecord: "thread:",
	store.KeepingRecord: "keeping:",
}

func recordKey(key store.Key) string {
	if key.Kind == store.KeyRecord {
		return kinds[key.Kind] + hex.EncodeToString([]byte(key.ID))
	}
	return kinds[key.Kind] + key.ID
}

// indexes are the keys of indexes. Those that somebody has begin so.
var indexes = [...]struct {
	name        string
	of, untimed bool
}{
	store.OpenIndex: {"open:", true, true}, store.DueIndex: {name: "due"}, store.EndedIndex: {name: "ended"},
	store.SpareIndex: {name: "spare"}, store.PrincipalsSpare: {name: "spare:", of: true},
	store.AskedIndex: {name: "asked", untimed: true}, store.ClosingIndex: {name: "closing"},
	store.PrincipalsClosing: {name: "closing:", of: true},
	store.OverIndex:         {name: "over"}, store.NewsIndex: {name: "news"},
	store.GrantIndex: {name: "grants", untimed: true}, store.GrantsWithKey: {"grants:", true, true}, store.LapsingIndex: {name: "lapsing"},
	store.NodeIndex: {name: "nodes", untimed: true}, store.ThreadIndex: {name: "threads"},
	store.PrincipalsThreads: {name: "threads:", of: true},
	store.StubIndex:         {name: "stubs"}, store.PrincipalsStubs: {name: "stubs:", of: true},
}

func indexKey(i store.Index) string {
	index := indexes[i.Name]
	if !index.of {
		return index.name
	}
	return index.name + owner(i.Of)
}

// owner names a principal, or whoever has rows, in a key.
func owner(of string) string { return hex.EncodeToString(store.PrincipalHash(of)) }

func revText(rev store.Rev) string {
	if rev == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(rev), 36)
}

// body is the part of a value that is long, and often stays when the rest changes.
func body(v store.Value) []byte {
	switch v := v.(type) {
	case *store.Call:
		if v.Step == store.Ended {
			return v.Answer.Result
		}
		return v.Task.Arguments
	case *store.Asked:
		return v.Arguments
	}
	return nil
}

// sameBody reports whether two values share their body.
func sameBody(was, now store.Value) bool {
	a, b := body(was), body(now)
	return was != nil && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// encode returns the head of a value.
func encode(v store.Value) ([]byte, error) {
	switch v := v.(type) {
	case *store.Call:
		c := *v
		c.Task.Arguments = nil
		return codec.EncodeCall(c), nil
	case *store.Started:
		return []byte(v.Call), nil
	case *store.Asked:
		a := v.Approval
		a.Arguments = nil
		record, err := approval.Encode(a)
		if err != nil {
			return nil, err
		}
		notice := v.EncodeNotice()
		return append(append([]byte{byte(len(notice))}, notice...), record...), nil
	case *approval.Grant:
		return approval.Encode(*v)
	case *store.Thread:
		head := append(binary.AppendUvarint(nil, uint64(len(v.Principal))), v.Principal...)
		return append(head, v.Encode()...), nil
	}
	return json.Marshal(v) // a question, a lease, stops, or since when terms are kept
}

// decode reads a value that encode has written.
func decode(key store.Key, head, body []byte) (store.Value, error) {
	value, err := decodeValue(key, head, body)
	if err != nil {
		return nil, store.Unavailable(errForeignReply)
	}
	return value, nil
}

func decodeValue(key store.Key, head, body []byte) (store.Value, error) {
	switch key.Kind {
	case store.CallRecord:
		c, err := codec.DecodeCall(head)
		if err != nil || c.ID != key.ID {
			return nil, errForeignReply
		}
		if c.Step == store.Ended {
			c.Answer.Result = body
		} else {
			c.Task.Arguments = body
		}
		return &c, nil
	case store.KeyRecord:
		if len(head) == 0 {
			return nil, errForeignReply
		}
		return &store.Started{Call: string(head)}, nil
	case store.AskRecord:
		if len(head) == 0 || len(head) <= int(head[0]) {
			return nil, errForeignReply
		}
		notice, record := head[1:1+head[0]], head[1+head[0]:]
		a, err := approval.Decode[approval.Approval](record)
		if err != nil || a.ID != key.ID {
			return nil, errForeignReply
		}
		if len(body) > 0 {
			a.Arguments = body
		}
		asked := &store.Asked{Approval: a}
		asked.DecodeNotice(notice)
		return asked, nil
	case store.GrantRecord:
		g, err := approval.Decode[approval.Grant](head)
		if err != nil || g.ID != key.ID {
			return nil, errForeignReply
		}
		return &g, nil
	case store.QuestionRecord:
		q := &store.Question{}
		return q, decodeJSON(head, q)
	case store.StopsRecord:
		s := &store.Stops{}
		return s, decodeJSON(head, s)
	case store.ThreadRecord:
		n, used := binary.Uvarint(head)
		if used <= 0 || n > uint64(len(head)-used) {
			return nil, errForeignReply
		}
		state, err := history.DecodeState(head[used+int(n):])
		return &store.Thread{ID: key.ID, Principal: string(head[used : used+int(n)]), State: state}, err
	case store.KeepingRecord:
		k := &history.Keeping{}
		return k, decodeJSON(head, k)
	}
	l := &store.Lease{}
	return l, decodeJSON(head, l)
}

func decodeJSON(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}
