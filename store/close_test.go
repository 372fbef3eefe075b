package store_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/store"
)

func TestClose(t *testing.T) {
	m := store.NewMemory(time.Now)
	id := opened(t, m, newCall("1", "k"))
	must(t, m.Close(ctx, id, store.Unknown, store.Answer{Result: []byte("r"), Status: 500}))
	if got, err := m.Get(ctx, id, "p"); err != nil || got.State != store.Unknown || string(got.Answer.Result) != "r" {
		t.Errorf("got %+v, %v", got, err)
	}
	refused(t, m.Close(ctx, id, store.Done, store.Answer{}), store.ErrEnded)
	refused(t, m.Close(ctx, "2", store.Done, store.Answer{}), store.ErrAbsent)
}
