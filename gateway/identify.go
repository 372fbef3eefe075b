package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

// identified is a caller whose credential was checked, and whose rate was charged, before
// more than the head of its request was read. Only Identify makes one. It replaces that
// part of one judgement of the same request: a second judgement checks the credential and
// charges the rate again.
type identified struct {
	kernel     *Kernel
	config     *Config // that judged the credential
	credential string
	address    string
	principal  *identity.Principal // nil if no credentials are required
	took       time.Duration
	used       atomic.Bool
}

// Identify identifies the caller of a request by its credential and address, or refuses the
// request as the first step of its judgement would. It reads nothing else of the request.
// It returns the name of the principal, or else the caller. A refusal here is counted and
// not recorded, because no input was read. The error is a *refusal.Error.
//
// The request remembers it: its judgement does not check the credential or charge the rate
// again, unless the configuration has changed since. Then the credential must still belong
// to the same caller.
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
		o.Judged(string(VerdictRefused), refused, "", "")
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
		return refuse.UnknownCaller()
	}
	return i.kernel.callerRate(ctx, i.config, i.name())
}

// name returns the caller's name: the principal, or else the address.
func (i *identified) name() string { return callerName(i.principal, i.address) }

// consumeIdentified returns the caller that Identify identified for this request; nil if
// there is none, or another judgement has taken it.
func (k *Kernel) consumeIdentified(request *Request) *identified {
	i := request.identified
	request.identified = nil
	if i == nil || i.kernel != k || i.credential != request.Credential || i.address != request.CallerAddress || i.used.Swap(true) {
		return nil
	}
	return i
}

// callerRate charges the rate of a caller. Without a name, as on the command line, there is
// no limit.
func (k *Kernel) callerRate(ctx context.Context, state *Config, caller string) error {
	if caller == "" {
		return nil
	}
	if k.deps.Limiter == nil {
		return refusal.At(refusal.Identity, refusal.LimiterUnavailable, refuse.Unlimited)
	}
	// A client that disconnects is charged, too: nothing else bounds how often it can
	// connect and disconnect.
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
