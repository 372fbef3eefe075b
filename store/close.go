package store

import (
	"context"
	"crypto/rand"
)

// Close notes what became of a call, whether or not it was said before that it
// is dispatched.
func (m *Memory) Close(ctx context.Context, id string, state State, answer Answer) error {
	err := m.change(id, func(k *kept) error {
		if k.call.Step != Opened {
			return nil
		}
		return k.call.dispatch(Task{Effect: "once"}, "")
	})
	if err != nil {
		return err
	}
	_, err = m.Finish(ctx, id, Ending{State: state, Answer: answer, Attempt: rand.Text()})
	return err
}
