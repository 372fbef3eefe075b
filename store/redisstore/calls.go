package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/store"
)

// Open records a call that is about to be judged. Where its key has already started
// a call, Open returns that call and records nothing.
func (r *Store) Open(ctx context.Context, call store.Call) (prior *store.Call, err error) {
	if call.ID == "" {
		return nil, store.ErrNoID
	}
	if ready, cause := r.Ready(); !ready {
		return nil, store.Unavailable(cause)
	}
	c := store.NewOpened(call, r.now())
	r.mu.Lock()
	current, crowded := r.opened.Owner(call), r.opened.Len() >= maxOpened
	if current == nil && !crowded && call.Key == "" {
		// Without a key there is nothing to claim before the call is dispatched.
		r.opened.Add(&c)
	}
	r.mu.Unlock()
	switch {
	case current != nil && current.ID == call.ID:
		return nil, current.Reopen(call)
	case current != nil:
		found := *current
		return &found, nil
	case crowded:
		return nil, store.ErrFull
	case call.Key == "":
		return nil, nil
	}
	return r.claimKey(ctx, &c)
}

// claimKey opens a call with a key in Redis.
func (r *Store) claimKey(ctx context.Context, c *store.Call) (prior *store.Call, err error) {
	r.mu.Lock()
	r.beingOpened[c.ID] = true
	r.mu.Unlock()
	claimed := false
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.beingOpened, c.ID)
		if claimed {
			r.opened.Add(c)
		}
	}()
	key, principal := keyAndPrincipalHash(c)
	args := append([]any{c.ID, key, principal, r.owner, r.lease.Milliseconds(), c.Size()}, r.bounds[:]...)
	reply, err := r.run(ctx, c.Scope.Principal, openScript, append(args, identityFields(c)...)...)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		r.retractLater(retraction{c.ID, c.Scope.Principal, ""})
		return nil, err
	case err != nil:
		return nil, err
	case len(reply) > 0:
		found, err := parseCall(reply[:len(reply)-1])
		if err != nil || found.Scope != c.Scope || found.Key != c.Key {
			return nil, store.Unavailable(errForeignReply)
		}
		return &found, nil
	}
	claimed = true
	return nil, nil
}

// retractLater takes a call back once Redis answers. Above the bound, calls are left
// for other processes to take over when this one has ended.
func (r *Store) retractLater(o retraction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.retractions) < maxRetractions {
		r.retractions = append(r.retractions, o)
	}
}

// Dispatch records that the tool of an opened call is about to be called, in
// Redis and in the journal.
func (r *Store) Dispatch(ctx context.Context, id string, task store.Task) error {
	r.mu.Lock()
	opened := r.opened.Get(id)
	if opened == nil {
		r.mu.Unlock()
		c, err := r.search(ctx, id)
		if err != nil {
			return err
		}
		return c.RequireStep(store.Opened)
	}
	c := *opened
	r.mu.Unlock()
	size := c.Size()
	if err := c.Dispatch(task, r.owner); err != nil {
		return err
	}
	readings := r.restores.Load()
	recorded := make(chan error, 1)
	go func() { recorded <- r.journal.Record(ctx, withSpent(c)) }()
	nonce := rand.Text()
	err := errors.Join(r.claimDispatch(ctx, &c, size, nonce), <-recorded)
	if err == nil {
		err = r.journalUses(ctx, &c)
	}
	if err == nil && r.restores.Load() != readings {
		// Redis has lost data since. The journal was perhaps read before the call was
		// in it: then Redis has lost the call and its key.
		err = store.Unavailable(errRestoredMeanwhile)
	}
	if err != nil {
		if errors.Is(err, store.ErrUnavailable) {
			r.retractLater(retraction{c.ID, c.Scope.Principal, nonce})
		}
		r.journal.DeleteLater(id)
		return err
	}
	r.mu.Lock()
	r.opened.Remove(id)
	r.running[id] = c.Scope.Principal
	r.mu.Unlock()
	for _, used := range slices.Concat(task.Using, task.Spends) {
		r.approvalWatchers.Notify(used)
	}
	return nil
}

// claimDispatch records a dispatch in Redis.
func (r *Store) claimDispatch(ctx context.Context, c *store.Call, size int64, nonce string) error {
	l, err := r.connection()
	if err != nil {
		return err
	}
	key, principal := keyAndPrincipalHash(c)
	args := append([]any{c.ID, key, principal, r.owner, r.lease.Milliseconds(), size}, r.bounds[:]...)
	args = append(args, nonce, c.Task.Size(), strings.Join(c.Task.Using, " "), strings.Join(c.Task.Spends, " "))
	args = append(append(args, identityFields(c)...), taskFields(c.Task)...)
	_, err = r.runAt(ctx, l, l.partitionOf(c.Scope.Principal), r.options.MinRedisReplicas, dispatchScript, args...)
	return err
}

// principalOf returns the principal of a call.
func (r *Store) principalOf(ctx context.Context, id string) (principal string, err error) {
	r.mu.Lock()
	principal, known := r.running[id]
	early := r.opened.Get(id) != nil
	r.mu.Unlock()
	switch {
	case early:
		return "", store.ErrTooEarly
	case known:
		return principal, nil
	}
	c, err := r.search(ctx, id)
	return c.Scope.Principal, err
}

// Update makes one change of a call that was dispatched. Each change is one script, and
// the journal gets what Redis has decided.
func (r *Store) Update(ctx context.Context, id string, change store.Change) error {
	switch change := change.(type) {
	case store.Redispatch:
		return r.redispatch(ctx, id)
	case store.Defer:
		return r.deferUntil(ctx, id, change.Until)
	case store.SetMetadata:
		return r.setMetadata(ctx, id, change)
	case store.Deliver:
		return r.deliver(ctx, id, change.Principal)
	}
	return fmt.Errorf("store: found the change %T, expected one of this package", change)
}

func (r *Store) redispatch(ctx context.Context, id string) error {
	principal, err := r.principalOf(ctx, id)
	if err != nil {
		return err
	}
	reply, err := r.run(ctx, principal, redispatchScript, id, r.owner, rand.Text())
	c, err := r.parseReply(id, reply, err)
	if err != nil {
		return err
	}
	return r.journal.Record(ctx, c)
}

// parseCount reads a reply that is one number.
func parseCount(reply []string) (int, error) {
	if len(reply) == 1 {
		if n, err := strconv.Atoi(reply[0]); err == nil {
			return n, nil
		}
	}
	return 0, store.Unavailable(errForeignReply)
}

// parseReply reads the reply of a transition, which is the call with the id.
func (r *Store) parseReply(id string, reply []string, err error) (store.Call, error) {
	if err != nil && !errors.Is(err, store.ErrEnded) || len(reply) == 0 {
		return store.Call{}, err
	}
	c, bad := parseCall(reply)
	if bad != nil || c.ID != id {
		return store.Call{}, store.Unavailable(errForeignReply)
	}
	return c, err
}

func (r *Store) deferUntil(ctx context.Context, id string, until time.Time) error {
	principal, err := r.principalOf(ctx, id)
	if err != nil {
		return err
	}
	reply, err := r.run(ctx, principal, deferScript, id, r.owner, unixMilli(until))
	c, err := r.parseReply(id, reply, err)
	if err != nil {
		return err
	}
	r.watchers.Notify(id)
	return r.journal.Record(ctx, c)
}

// Finish ends a call and returns it as it is then. With ErrEnded it returns the call
// as another attempt has finished it.
func (r *Store) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	if _, err := (&store.Call{Step: store.Dispatched}).Finish(ending, time.Time{}); err != nil {
		return store.Call{}, err
	}
	principal, err := r.principalOf(ctx, id)
	if err != nil {
		return store.Call{}, err
	}
	delivered := ""
	if ending.Deliver {
		delivered = ending.Attempt
	}
	args := append([]any{id, ending.Attempt, string(ending.State), ending.Answer.Status, ending.Answer.Result, delivered}, r.bounds[:]...)
	args = append(args, ending.Metadata)
	reply, err := r.run(ctx, principal, finishScript, args...)
	c, err := r.parseReply(id, reply, err)
	if errors.Is(err, store.ErrNotFound) {
		c, err = r.finishFromJournal(ctx, id, ending)
	}
	if err != nil && !errors.Is(err, store.ErrEnded) {
		return store.Call{}, err
	}
	if recorded := r.journal.Record(ctx, c); recorded != nil && err == nil {
		return store.Call{}, recorded
	}
	r.mu.Lock()
	delete(r.running, id)
	r.mu.Unlock()
	r.watchers.Notify(id)
	return c, err
}

// finishFromJournal ends a call that the journal has and Redis has lost. It ends the
// call in the journal first: else the next loss would restore it as running.
func (r *Store) finishFromJournal(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	c, err := r.journal.Get(ctx, id, store.OfAnyone())
	if err != nil {
		return store.Call{}, err
	}
	if _, err := c.Finish(ending, r.now()); err != nil {
		return c, err
	}
	if err := r.journal.Record(ctx, c); err != nil {
		return store.Call{}, err
	}
	l, err := r.connection()
	if err != nil {
		return store.Call{}, err
	}
	if err := r.restoreCall(ctx, &l.partitions[l.partitionOf(c.Scope.Principal)], &c); err != nil {
		return store.Call{}, store.Unavailable(err)
	}
	return c, nil
}

func (r *Store) setMetadata(ctx context.Context, id string, m store.SetMetadata) error {
	if m.At.Rank() < store.Waiting.Rank() {
		return store.ErrTooEarly
	}
	principal, err := r.principalOf(ctx, id)
	if err != nil {
		return err
	}
	reply, err := r.run(ctx, principal, metadataScript, id, string(m.At), m.Was, m.Metadata)
	if _, err := r.parseReply(id, reply, err); err != nil {
		return err
	}
	r.watchers.Notify(id)
	return r.journal.RecordMetadata(ctx, id, m.At, m.Metadata)
}

// Settle removes a call that was not dispatched; its key is free again. Other calls stay.
func (r *Store) Settle(ctx context.Context, id string) error {
	r.mu.Lock()
	c := r.opened.Remove(id)
	r.mu.Unlock()
	if c == nil || c.Key == "" {
		return nil
	}
	if _, err := r.run(ctx, c.Scope.Principal, retractScript, id, r.owner, ""); err != nil {
		r.retractLater(retraction{id, c.Scope.Principal, ""})
		return err
	}
	return nil
}

// Get returns a call; for a call of somebody else, ErrNotFound. A principal's calls are in
// one partition. Without a principal, it asks each partition until the call is found.
func (r *Store) Get(ctx context.Context, id string, whose store.Whose) (store.Call, error) {
	if c, ok := r.openedCall(id); ok {
		return whose.Only(c, nil)
	}
	if principal, ok := whose.Principal(); ok {
		return whose.Only(r.read(ctx, id, principal))
	}
	return r.search(ctx, id)
}

// read returns a call from the partition of its principal.
func (r *Store) read(ctx context.Context, id, principal string) (store.Call, error) {
	reply, err := r.run(ctx, principal, getScript, id)
	return r.parseReply(id, reply, err)
}

// openedCall returns a call that this process keeps in memory.
func (r *Store) openedCall(id string) (store.Call, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if opened := r.opened.Get(id); opened != nil {
		return *opened, true
	}
	return store.Call{}, false
}

// search returns a call from whatever partition has it.
func (r *Store) search(ctx context.Context, id string) (store.Call, error) {
	l, err := r.connection()
	if err != nil {
		return store.Call{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeouts.decision)
	defer cancel()
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, getScript, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		return r.parseReply(id, reply, err)
	}
	return store.Call{}, store.ErrNotFound
}

// deliver uses the name of the principal, which also says in which partition the call is.
func (r *Store) deliver(ctx context.Context, id, principal string) error {
	if _, early := r.openedCall(id); early {
		return store.ErrTooEarly
	}
	_, err := r.run(ctx, principal, deliverScript, id, principal, rand.Text())
	if err == nil {
		r.journal.RecordDelivered(id)
	}
	return err
}

// Watch returns a watch for the next change of a call. Changes by another process
// are seen within a second.
func (r *Store) Watch(id string) (*store.Watch, error) { return r.watchers.Add(id) }
