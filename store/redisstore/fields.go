package redisstore

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/internal/codec"
)

// errForeignReply says that Redis answered with data that a store did not write.
var errForeignReply = errors.New("the data or the reply of Redis were not written by this store")

// identityFields are the fields of a call in Redis that never change.
func identityFields(c *store.Call) []any {
	return []any{"id", c.ID, "principal", c.Scope.Principal, "workspace", c.Scope.Workspace, "project", c.Scope.Project, "key", c.Key, "digest", c.Digest}
}

// taskFields are the fields of a dispatched call. The arguments have a field of
// their own, since they are removed earlier.
func taskFields(t store.Task) []any {
	arguments, effect := t.Arguments, t.Effect
	t.Arguments = nil
	return []any{"task", codec.EncodeTask(t), "effect", effect, "arguments", arguments}
}

// journalFields are all fields of a call, as a journal restores them.
func journalFields(c *store.Call) []any {
	f := append(identityFields(c), taskFields(c.Task)...)
	f = append(f, "step", string(c.Step), "owner", c.Owner, "opened", c.Opened.UnixMilli())
	if c.Step.Rank() >= store.Waiting.Rank() {
		f = append(f, "until", unixMilli(c.Until))
	}
	if c.Step == store.Ended {
		f = append(f, "state", string(c.State), "status", c.Answer.Status, "result", c.Answer.Result, "ended", c.Ended.UnixMilli(), "attempt", c.FinishedBy)
	}
	switch {
	case c.DeliveredByEnding:
		f = append(f, "delivered", c.FinishedBy)
	case c.Delivered:
		f = append(f, "delivered", "journal")
	}
	if len(c.Task.Using) > 0 {
		f = append(f, "using", strings.Join(c.Task.Using, " "))
	}
	if len(c.Metadata) > 0 {
		f = append(f, "note", c.Metadata)
	}
	return f
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// keyAndPrincipalHash returns the names of the key and of the principal of a call
// within keys in Redis. A call without a key has no name for it.
func keyAndPrincipalHash(c *store.Call) (key, principal string) {
	if c.Key != "" {
		key = hex.EncodeToString(store.KeyHash(c.Scope, c.Key))
	}
	return key, hex.EncodeToString(store.PrincipalHash(c.Scope.Principal))
}

// hasField reports whether a call in Redis has a field.
func hasField(flat []string, name string) bool {
	for i := 0; i < len(flat); i += 2 {
		if flat[i] == name {
			return true
		}
	}
	return false
}

// parseCall reads a call from the names and values of its hash in Redis.
func parseCall(flat []string) (c store.Call, err error) {
	if len(flat)%2 != 0 {
		return c, errForeignReply
	}
	f := map[string]string{}
	for i := 0; i < len(flat); i += 2 {
		f[flat[i]] = flat[i+1]
	}
	bad := false
	number := func(name string) int64 {
		if f[name] == "" {
			return 0
		}
		n, err := strconv.ParseInt(f[name], 10, 64)
		bad = bad || err != nil
		return n
	}
	instant := func(name string) (t time.Time) {
		if ms := number(name); ms != 0 {
			t = time.UnixMilli(ms)
		}
		return t
	}
	c = store.Call{
		ID: f["id"], Scope: store.Scope{Principal: f["principal"], Workspace: f["workspace"], Project: f["project"]}, Key: f["key"], Digest: f["digest"],
		State: store.Pending, Step: store.Step(f["step"]), Owner: f["owner"], Attempts: int(number("attempts")), FinishedBy: f["attempt"],
		Opened: instant("opened"), Until: instant("until"), Ended: instant("ended"), Delivered: f["delivered"] != "",
	}
	c.DeliveredByEnding = c.Delivered && f["delivered"] == c.FinishedBy
	if c.Step.Rank() > store.Opened.Rank() {
		if c.Task, err = codec.DecodeTask([]byte(f["task"])); err != nil {
			return store.Call{}, errForeignReply
		}
		if f["arguments"] != "" {
			c.Task.Arguments = []byte(f["arguments"])
		}
	}
	if f["note"] != "" {
		c.Metadata = []byte(f["note"])
	}
	if c.Step == store.Ended {
		c.State, c.Answer = store.State(f["state"]), store.Answer{Result: []byte(f["result"]), Status: int(number("status"))}
		bad = bad || c.State != store.Done && c.State != store.Unknown || c.Ended.IsZero()
	}
	key, principal := keyAndPrincipalHash(&c)
	if bad || c.ID == "" || c.Step.Rank() == 0 || f["k"] != key || f["p"] != principal {
		return store.Call{}, errForeignReply
	}
	return c, nil
}
