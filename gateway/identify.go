package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

// identified is a caller whose credential was judged, and whose rate was taken, before
// more than the head of its request was read. Only Identify makes one. It stands in
// for that part of one judgement of the same request: a second judgement asks for the
// credential and takes the rate again.
type identified struct {
	kernel     *Kernel
	config     *Config // that judged the credential
	credential string
	address    string
	principal  *identity.Principal // nil where no credentials are asked for
	took       time.Duration
	used       atomic.Bool
}

// Identify says who asks, by the credential and the caller of a request, or refuses the
// request as the first step of its judgement would. Nothing else of it is looked at. It
// returns the name of the principal, or else the caller. What is refused here is counted
// and not written down: nothing was read that could have been judged. The error is a
// *refusal.Error.
//
// The request remembers it: its judgement neither judges the credential nor takes the
// rate again, unless the configuration has changed since. Then the same credential must
// be the same caller's still.
func (k *Kernel) Identify(ctx context.Context, request *Request) (name string, err error) {
	before := k.deps.Now()
	i := &identified{kernel: k, config: k.config.Load(), credential: request.Credential, address: request.CallerAddress}
	refused := refusal.From(refusal.Identity, i.identify(ctx))
	i.took = k.deps.Now().Sub(before)
	if refused == nil {
		request.identified = i
		return i.name(), nil
	}
	if o := k.deps.Observer; o != nil {
		o.Judged(string(VerdictRefused), refused)
		o.Stage(refusal.Identity, i.took)
	}
	return "", refused
}

func (i *identified) identify(ctx context.Context) (err error) {
	defer safe.Recover(&err)
	if i.principal, err = i.config.principal(i.credential); err != nil {
		return err
	}
	if i.config.Identity != nil && i.principal == nil {
		return unknownCaller()
	}
	return i.kernel.callerRate(ctx, i.config, i.name())
}

// name is who asks: the principal, or else the address.
func (i *identified) name() string { return callerName(i.principal, i.address) }

// consumeIdentified returns who was identified for this request; nil where nobody was, or another
// judgement has taken it.
func (k *Kernel) consumeIdentified(request *Request) *identified {
	i := request.identified
	request.identified = nil
	if i == nil || i.kernel != k || i.credential != request.Credential || i.address != request.CallerAddress || i.used.Swap(true) {
		return nil
	}
	return i
}

// callerRate takes the rate of a caller. Without a name, as on the command line, there
// is none.
func (k *Kernel) callerRate(ctx context.Context, state *Config, caller string) error {
	if caller == "" {
		return nil
	}
	if k.deps.Limiter == nil {
		return refusal.At(refusal.Identity, refusal.LimiterUnavailable, refusedUnlimited)
	}
	// A client that leaves pays as well: nothing else bounds how often it can come and
	// leave.
	return k.deps.Limiter.Caller(context.WithoutCancel(ctx), state.Limits, caller)
}

// callerName is the name of a principal, or else an address.
func callerName(p *identity.Principal, address string) string {
	if p != nil {
		return p.Name
	}
	return address
}

// principalName names the owner of calls. Without credentials all callers are one owner.
func principalName(p *identity.Principal) string {
	if p == nil {
		return ""
	}
	return p.Name
}
