package boltstore

import (
	"context"
	"slices"
	"strings"

	"github.com/callgate/callgate/store"
)

// Unfinished returns at most limit calls without an outcome whose ids are behind after, in the
// order of their ids: those in the file and those in memory. A call that is being judged and has
// a key is in neither. It is for operators: it changes nothing.
func (f *Store) Unfinished(ctx context.Context, after string, limit int) ([]store.Call, error) {
	calls, err := Journal{f}.Unfinished(after, limit)
	if err != nil || f.brief == nil {
		return calls, err
	}
	brief, err := f.brief.Unfinished(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	calls = append(calls, brief...)
	slices.SortFunc(calls, func(a, b store.Call) int { return strings.Compare(a.ID, b.ID) })
	// A call that moves to the file meanwhile may have been read in both.
	calls = slices.CompactFunc(calls, func(a, b store.Call) bool { return a.ID == b.ID })
	return calls[:min(limit, len(calls))], nil
}
