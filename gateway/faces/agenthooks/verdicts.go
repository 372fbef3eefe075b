package agenthooks

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/refusal"
)

// maxVerdicts bounds the verdicts that are kept, by their keys. A call whose verdict is not kept any more is judged anew
// before it runs, and is unjudged after.
const maxVerdicts = 1 << 16

// verdict is what was answered to a call. It does not change.
type verdict struct {
	digest   [sha256.Size]byte
	config   string // by which it was judged
	callID   string
	refused  *refusal.Error
	question *approvals.Question // the agent's user is asked
}

// passed reports whether the call may have run.
func (v *verdict) passed() bool { return v.refused == nil || v.question != nil }

// verdicts are the last verdicts of this gateway on calls of hooks. The zero value has none.
type verdicts struct {
	mu    sync.Mutex
	of    map[string]*verdict
	turns map[string]chan struct{} // closed at the end of the turn
	order []string                 // a ring of the keys of of
	next  int
}

// enter waits for the turn of a request about the call of a key: there is one at a time. It fails where ctx ends before.
func (k *verdicts) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		k.mu.Lock()
		other, taken := k.turns[key]
		if !taken {
			mine := make(chan struct{})
			if k.turns == nil {
				k.turns = map[string]chan struct{}{}
			}
			k.turns[key] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				delete(k.turns, key)
				close(mine)
			}, nil
		}
		k.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (k *verdicts) get(key string) *verdict {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.of[key]
}

// put keeps a verdict under keys; the oldest ones go.
func (k *verdicts) put(v *verdict, keys ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]*verdict{}
	}
	for _, key := range keys {
		if _, there := k.of[key]; !there {
			if len(k.order) < maxVerdicts {
				k.order = append(k.order, key)
			} else {
				delete(k.of, k.order[k.next])
				k.order[k.next] = key
				k.next = (k.next + 1) % maxVerdicts
			}
		}
		k.of[key] = v
	}
}
