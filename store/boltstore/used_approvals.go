package boltstore

import (
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/internal/codec"
)

// useApprovals uses up the approvals of a task for its call, all or none of those that it passed
// by, and returns them as they were and what follows. It writes nothing if it returns an error.
func (f *Store) useApprovals(t *tables, call string, task *store.Task) (was []approval.Approval, after func(), err error) {
	was, used, err := task.UseApprovals(call, f.now(), t.loadApproval, t.loadGrant)
	if err != nil {
		return nil, nil, err
	}
	var afters []func()
	for i := range used {
		if err := t.saveApproval(&was[i], &used[i]); err != nil {
			return nil, nil, store.Unavailable(codec.ErrCorrupt) // an approval with less in it than before was encoded
		}
		afters = append(afters, f.replaced(&was[i], &used[i]))
	}
	return was, func() {
		for _, after := range afters {
			after()
		}
	}, nil
}

// release takes back that a call has used approvals, which were so before.
func (f *Store) release(t *tables, call string, was []approval.Approval) (after func(), err error) {
	var afters []func()
	for i := range was {
		now, err := t.loadApproval(was[i].ID)
		if err != nil || now.Ran != call {
			continue
		}
		was[i].Revision = now.Revision + 1
		if err := t.saveApproval(&now, &was[i]); err != nil {
			return nil, err
		}
		afters = append(afters, f.replaced(&now, &was[i]))
	}
	return func() {
		for _, after := range afters {
			after()
		}
	}, nil
}
