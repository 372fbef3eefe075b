package redisstore

import (
	"context"

	"github.com/callgate/callgate/store"
)

// Unfinished returns at most limit calls of this gateway without an outcome whose ids are behind
// after, in the order of their ids, by its journal: Redis is not asked. A call that another
// gateway has finished may be listed for some seconds longer.
func (r *Store) Unfinished(_ context.Context, after string, limit int) ([]store.Call, error) {
	return r.journal.Unfinished(after, limit)
}
