// Package consent is what the kernel needs to know of people's approval: what they have said of
// a call that the policy asks them for, whether it passes by that, and the words of its refusal
// where it does not. Package approval says what a yes is bound to and how votes are counted;
// taking votes is the task of gateway/approvals.
package consent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// Reader finds what people have said of a call. It must be safe for concurrent use.
type Reader interface {
	// Consents returns the approvals of a call by its digest that are kept, and the grants of
	// its keys.
	Consents(ctx context.Context, call *approval.Call, digest string, keys []string) ([]approval.Approval, []approval.Grant, error)
	// Get returns an approval. The error is a *refusal.Error.
	Get(ctx context.Context, id string) (approval.Approval, error)
}

// Question is whether people allow a call.
type Question struct {
	Call approval.Call
	Tool string   // its name, as messages write it
	Asks []string // the rules by which they are asked

	Rules  approval.Rules
	People approval.People
}

// Answer looks up what people have said, and counts it. It returns the digest of the call, too.
// The error is a *refusal.Error where the caller can be told more than that the stage failed.
func (q *Question) Answer(ctx context.Context, r Reader, now time.Time) (v approval.Verdict, digest string, err error) {
	digest, err = q.Call.Digest()
	if errors.Is(err, approval.ErrTooLong) {
		return v, "", refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
			"%s needs the approval of a person here, and nobody can be asked: the arguments are longer than the %d bytes that a person can be shown whole. "+
				"Nothing was executed. Send a call with less, or say what you cannot do.", q.Tool, approval.MaxArguments))
	}
	if err != nil {
		return v, "", err
	}
	keys, err := q.grantKeys()
	if err != nil {
		return v, "", err
	}
	if r == nil {
		return v, "", refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
			"%s needs the approval of a person here, and nobody can be asked. Nothing was executed. Say what you cannot do.", q.Tool))
	}
	found, grants, err := r.Consents(ctx, &q.Call, digest, keys)
	if err != nil {
		return v, "", refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"What people have said of this call cannot be looked up now, so nothing was executed. Retry later; changing the call will not help.").WithCause(err)
	}
	v, err = approval.Judge(&q.Call, q.Asks, found, grants, q.Rules, q.People, now)
	return v, digest, err
}

// grantKeys are the keys of all grants that could let the call pass.
func (q *Question) grantKeys() (keys []string, err error) {
	for _, name := range q.Asks {
		for scope := range q.Rules[name].Remember {
			key, err := q.Call.GrantKey(name, scope)
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// ErrOther says that a call names an approval which is not of this call and caller, or is not
// kept, or was used. Its holder is told no more than that.
var ErrOther = errors.New("consent: the approval that the call names is not its own, or no longer")

// CheckNamed checks the approval that a call names as the one that it was asked for: it must be of
// the same call of the same caller. One that was decided against, or ended, refuses the call, which
// would only be asked for anew. The error is ErrOther, or a *refusal.Error.
func (q *Question) CheckNamed(ctx context.Context, r Reader, id string, now time.Time) error {
	digest, err := q.Call.Digest()
	if r == nil || err != nil {
		return ErrOther
	}
	a, err := r.Get(ctx, id)
	var refused *refusal.Error
	switch {
	case errors.As(err, &refused) && refused.Code == refusal.NotFound:
		return ErrOther
	case err != nil:
		return refusal.At(refusal.Approval, refusal.StoreUnavailable,
			"What people have said of this call cannot be looked up now, so nothing was executed. Retry later; changing the call will not help.").WithCause(err)
	case a.Principal != q.Call.Principal || a.Digest != digest || a.Ran != "":
		return ErrOther
	case len(q.Asks) == 0:
		return nil
	}
	switch state := a.State(q.Rules, q.People, now); state {
	case approval.Waiting, approval.Approved:
		return nil
	default:
		return RefuseEnded(&a, state, q.Rules, q.People)
	}
}

// ShownRows are the places of policy rows as approvers see them: the name of the file and the
// line, without the folders of this machine, which are the operator's business.
func ShownRows(places []string) []string {
	named := make([]string, len(places))
	for i, place := range places {
		named[i] = filepath.Base(place)
	}
	return named
}
