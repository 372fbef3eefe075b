package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

func parseGrants(records []string) (grants []approval.Grant, err error) {
	for _, record := range records {
		g, err := approval.Decode[approval.Grant]([]byte(record))
		if err != nil {
			return nil, store.Unavailable(errForeignReply)
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// AddGrant keeps a grant. No journal has it: if Redis is emptied, people are asked anew.
func (r *Store) AddGrant(ctx context.Context, g approval.Grant) error {
	if !store.IsGrant(g.ID) {
		return store.ErrNoID
	}
	record, err := approval.Encode(g)
	if err != nil {
		return err
	}
	_, err = r.run(ctx, g.Principal, addGrantScript, g.ID, record, g.Key, g.Until.UnixMilli(), store.MaxGrants)
	return err
}

// Grants returns live grants in the order of their ids.
func (r *Store) Grants(ctx context.Context, after string, limit int) (grants []approval.Grant, err error) {
	l, err := r.connection()
	if err != nil {
		return nil, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, grantsScript)
		if err != nil {
			return nil, err
		}
		some, err := parseGrants(reply)
		if err != nil {
			return nil, err
		}
		grants = append(grants, some...)
	}
	grants = slices.DeleteFunc(grants, func(g approval.Grant) bool { return g.ID <= after })
	slices.SortFunc(grants, func(a, b approval.Grant) int { return cmp.Compare(a.ID, b.ID) })
	return grants[:min(len(grants), max(0, limit))], nil
}

// RevokeGrant removes a grant.
func (r *Store) RevokeGrant(ctx context.Context, id string) (g approval.Grant, err error) {
	l, err := r.connection()
	if err != nil {
		return g, err
	}
	for i := range l.partitions {
		reply, err := r.runAt(ctx, l, i, 0, grantScript, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return g, err
		}
		grants, err := parseGrants(reply)
		if err != nil || len(grants) != 1 {
			return g, cmp.Or(err, store.Unavailable(errForeignReply))
		}
		_, err = r.runAt(ctx, l, i, 0, revokeGrantScript, id)
		return grants[0], err
	}
	return g, store.ErrNotFound
}
