package app

import (
	"context"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/telemetry"
)

// comparing compares judgements with those of a candidate.
type comparing struct {
	*lab.Comparer
	metrics *telemetry.Metrics
	stop    context.CancelFunc
	ended   chan struct{}
}

// newComparing starts to compare with the candidate of a configuration, if it has one.
func newComparing(c *configs.Config, metrics *telemetry.Metrics) *comparing {
	ctx, stop := context.WithCancel(context.Background())
	k := &comparing{lab.NewComparer(time.Now, metrics.CandidateCompared), metrics, stop, make(chan struct{})}
	k.set(ready(c))
	go func() {
		defer close(k.ended)
		k.Run(ctx)
	}()
	return k
}

// Close ends the comparison; what waits is not compared.
func (k *comparing) Close() {
	k.stop()
	<-k.ended
}

// readyCandidate is a candidate that is ready, or why there is none.
type readyCandidate struct {
	judge                    lab.CandidateJudge
	served, candidate, fault string
}

// ready makes the candidate of a configuration ready, which changes nothing yet. One that cannot be
// is its fault, and no error: it holds nothing up.
func ready(c *configs.Config) readyCandidate {
	r := readyCandidate{served: c.Digest}
	if c.CandidateFault != nil {
		r.fault = c.CandidateFault.Error()
	}
	if c.Candidate == nil {
		return r
	}
	r.candidate = c.Candidate.Digest
	made, err := dryRun(c.Candidate)
	if err != nil {
		r.fault = err.Error()
		return r
	}
	r.judge = made
	return r
}

// dryRun is the judge of a candidate. A panic is an error.
func dryRun(c *configs.Config) (made lab.CandidateJudge, err error) {
	defer safe.RecoverZero(&made, &err)
	return c.DryRun()
}

// set compares with a candidate.
func (k *comparing) set(r readyCandidate) {
	k.metrics.CandidateFailed(r.fault != "")
	k.Set(r.judge, r.served, r.candidate, r.fault)
}

// follow makes the candidate ready before the configuration takes effect.
func (k *comparing) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	r := ready(c)
	return change{commit: func() { k.set(r) }, abort: doNothing}, nil
}
