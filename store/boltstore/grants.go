package boltstore

import (
	"context"
	"maps"
	"slices"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// consents is the part of the file that is read for each call that asks, in memory. It has
// what is durable.
type consents struct {
	byDigest map[string]int // how many approvals the index has of a digest
	grants   map[string]approval.Grant
	byKey    map[string][]string // ids of grants by their keys
}

func (c *consents) add(g approval.Grant) {
	if _, kept := c.grants[g.ID]; !kept {
		c.grants[g.ID] = g
		c.byKey[g.Key] = append(c.byKey[g.Key], g.ID)
	}
}

func (c *consents) remove(g approval.Grant) {
	delete(c.grants, g.ID)
	c.byKey[g.Key] = slices.DeleteFunc(c.byKey[g.Key], func(id string) bool { return id == g.ID })
	if len(c.byKey[g.Key]) == 0 {
		delete(c.byKey, g.Key)
	}
}

// AddGrant keeps a grant.
func (f *Store) AddGrant(ctx context.Context, g approval.Grant) error {
	if !store.IsGrant(g.ID) {
		return store.ErrNoID
	}
	b, err := approval.Encode(g)
	if err != nil {
		return err
	}
	return f.writer.apply(ctx, func(t *tables) (func(), error) {
		f.mu.Lock()
		n := len(f.consents.grants)
		f.mu.Unlock()
		switch {
		case t.tx.Bucket(grantsTable).Get([]byte(g.ID)) != nil:
			return nil, nil
		case n >= store.MaxGrants:
			return nil, store.ErrFull
		}
		t.put(grantsTable, []byte(g.ID), seal(b))
		return func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.consents.add(g)
		}, nil
	}, nil)
}

// Grants returns live grants in the order of their ids.
func (f *Store) Grants(_ context.Context, after string, limit int) (grants []approval.Grant, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(f.consents.grants)) {
		if g := f.consents.grants[id]; id > after && len(grants) < limit && g.Live(f.now()) {
			grants = append(grants, g)
		}
	}
	return grants, nil
}

// RevokeGrant removes a grant.
func (f *Store) RevokeGrant(ctx context.Context, id string) (approval.Grant, error) {
	result := make(chan approval.Grant, 1)
	err := f.writer.apply(ctx, func(t *tables) (func(), error) {
		g, err := t.loadGrant(id)
		if err != nil {
			return nil, err
		}
		result <- g
		return f.removeGrant(t, g), nil
	}, nil)
	if err != nil {
		return approval.Grant{}, err
	}
	return <-result, nil
}

func (t *tables) loadGrant(id string) (approval.Grant, error) {
	sealed := []byte(nil)
	if id != "" {
		sealed = t.tx.Bucket(grantsTable).Get([]byte(id))
	}
	if sealed == nil {
		return approval.Grant{}, store.ErrNotFound
	}
	return unseal[approval.Grant](sealed)
}

func (f *Store) removeGrant(t *tables, g approval.Grant) func() {
	t.delete(grantsTable, []byte(g.ID))
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.consents.remove(g)
	}
}
