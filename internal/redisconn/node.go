package redisconn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Node is one server of Redis. No type of the client library is part of what this package offers: whoever could reach one
// would have its hundreds of methods compiled once more.
type Node interface {
	// Address is host and port.
	Address() string
	// Send sends commands as one pipeline on one connection, and appends the reply to each.
	Send(ctx context.Context, replies []Reply, commands ...[]any) []Reply
}

// Do sends one command.
func Do(ctx context.Context, n Node, command ...any) Reply { return n.Send(ctx, nil, command)[0] }

// Script is a script that Redis knows by its digest, once it has come whole.
type Script struct{ Source, name string }

// NewScript returns the script of a source.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source, hex.EncodeToString(sum[:])}
}

// AppendCall appends how the script is called with so many keys, which come next: by its digest, or whole, where Redis has answered
// NOSCRIPT.
func (s *Script) AppendCall(command []any, whole bool, keys int) []any {
	if whole {
		return append(command, "eval", s.Source, keys)
	}
	return append(command, "evalsha", s.name, keys)
}

// Reply is what came of a command.
type Reply struct {
	value any
	Err   error // an error reply (see IsReply), or why there is no reply
}

// errForeignReply says that a reply is of another kind than the command has.
var errForeignReply = errors.New("Redis answered by a reply of another kind")

// Text returns the reply where it is a text; "" without an error is also none at all.
func (r Reply) Text() (text string, err error) {
	text, ok := r.value.(string)
	if r.Err == nil && !ok && r.value != nil {
		return "", errForeignReply
	}
	return text, r.Err
}

// Int returns the reply where it is a number.
func (r Reply) Int() (n int64, err error) {
	n, ok := r.value.(int64)
	if r.Err == nil && !ok {
		return 0, errForeignReply
	}
	return n, r.Err
}

// Texts returns the reply where it is a list of texts.
func (r Reply) Texts() ([]string, error) {
	list, ok := r.value.([]any)
	if r.Err != nil {
		return nil, r.Err
	}
	texts := make([]string, len(list))
	for i, v := range list {
		if texts[i], ok = v.(string); !ok {
			break
		}
	}
	if !ok {
		return nil, errForeignReply
	}
	return texts, nil
}

// backend is a client of the library.
type backend interface {
	Close() error
	// node is the one that has a key.
	node(ctx context.Context, key string) (Node, error)
	// masters is how many of them there are; reload finds anew which has which keys.
	masters(ctx context.Context) (int, error)
	reload(ctx context.Context)
}

type node struct{ client *redis.Client }

func (n node) Address() string { return n.client.Options().Addr }

func (n node) Send(ctx context.Context, replies []Reply, commands ...[]any) []Reply {
	if len(commands) == 1 {
		return append(replies, replyTo(n.client.Do(ctx, commands[0]...), nil))
	}
	pipe := n.client.Pipeline()
	for _, c := range commands {
		pipe.Do(ctx, c...)
	}
	sent, err := pipe.Exec(ctx)
	for i := range commands {
		if i < len(sent) {
			replies = append(replies, replyTo(sent[i].(*redis.Cmd), err))
		} else {
			replies = append(replies, Reply{Err: err})
		}
	}
	return replies
}

// replyTo is the reply to a command; all is the error of its whole pipeline.
func replyTo(command *redis.Cmd, all error) Reply {
	value, err := command.Result()
	switch {
	case errors.Is(err, redis.Nil):
		err = nil
	case value == nil && err == nil:
		err = all
	}
	return Reply{value, err}
}

// single is a client of one node, which a sentinel may name.
type single struct{ client *redis.Client }

func (s single) Close() error                               { return s.client.Close() }
func (s single) node(context.Context, string) (Node, error) { return node(s), nil }
func (single) masters(context.Context) (int, error)         { return 1, nil }
func (single) reload(context.Context)                       {}

type cluster struct{ client *redis.ClusterClient }

func (c cluster) Close() error { return c.client.Close() }

func (c cluster) node(ctx context.Context, key string) (Node, error) {
	n, err := c.client.MasterForKey(ctx, key)
	return node{n}, err
}

func (c cluster) masters(ctx context.Context) (int, error) {
	var n atomic.Int64 // it asks for all of them at once
	err := c.client.ForEachMaster(ctx, func(context.Context, *redis.Client) error {
		n.Add(1)
		return nil
	})
	return int(n.Load()), err
}

func (c cluster) reload(ctx context.Context) { c.client.ReloadState(ctx) }
