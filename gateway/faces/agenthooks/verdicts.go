package agenthooks

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/internal/ring"
	"github.com/callgate/callgate/refusal"
)

// maxVerdicts bounds the verdicts that are kept, by their keys. A call whose verdict is not kept any more is judged anew
// before it runs, and is unjudged after.
const maxVerdicts = 1 << 16

// verdict is what was answered to a call. It does not change.
type verdict struct {
	digest   [sha256.Size]byte
	under    [sha256.Size]byte // for whom, and where
	config   string            // by which it was judged
	callID   string
	refused  *refusal.Error
	question *approvals.Question // the agent's user is asked
	ran      bool
}

// passed reports whether the call may have run.
func (v *verdict) passed() bool { return v.refused == nil || v.question != nil }

// brief is the verdict without what grows with the call.
func (v verdict) brief() *verdict {
	if v.refused != nil {
		v.refused = refusal.At(v.refused.Stage, v.refused.Code, "")
	}
	if q := v.question; q != nil {
		v.question = &approvals.Question{ID: q.ID, Digest: q.Digest, Hints: q.Hints}
	}
	return &v
}

// verdicts are the last verdicts of this gateway on calls of hooks.
type verdicts struct {
	*ring.Ring[string, *verdict]

	mu    sync.Mutex
	turns map[string]chan struct{} // closed at the end of the turn
}

func newVerdicts() *verdicts {
	return &verdicts{Ring: ring.New[string, *verdict](maxVerdicts), turns: map[string]chan struct{}{}}
}

// enter waits for the turn of a request about the call of a key: there is one at a time. It fails where ctx ends before.
func (k *verdicts) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		k.mu.Lock()
		other, taken := k.turns[key]
		if !taken {
			mine := make(chan struct{})
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

// put keeps a verdict under keys.
func (k *verdicts) put(v *verdict, keys ...string) {
	v = v.brief()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		k.Put(key, v)
	}
}

// end says that the call of a verdict has run, under those of its keys that do not have another by now.
func (k *verdicts) end(v *verdict, keys ...string) {
	ended := *v
	ended.ran = true
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if kept, _ := k.Get(key); kept == v {
			k.Put(key, &ended)
		}
	}
}
