package app

import (
	"context"
	"time"

	"github.com/callgate/callgate/candidate"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/telemetry"
)

// comparing compares judgements with those of a candidate.
type comparing struct {
	*candidate.Comparer
	metrics *telemetry.Metrics
	stop    context.CancelFunc
	ended   chan struct{}
}

// newComparing starts to compare with the candidate of a configuration, if it has one.
func newComparing(c *configs.Config, metrics *telemetry.Metrics) *comparing {
	ctx, stop := context.WithCancel(context.Background())
	k := &comparing{candidate.New(time.Now, metrics.CandidateCompared), metrics, stop, make(chan struct{})}
	k.set(c)
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

// set compares with the candidate of a configuration that takes effect.
func (k *comparing) set(c *configs.Config) {
	fault := ""
	if c.CandidateFault != nil {
		fault = c.CandidateFault.Error()
	}
	var judge candidate.Judge
	digest := ""
	if c.Candidate != nil {
		digest = c.Candidate.Digest
		if made, err := c.Candidate.DryRun(); err != nil {
			fault = err.Error()
		} else {
			judge = made
		}
	}
	k.metrics.CandidateFailed(fault != "")
	k.Set(judge, c.Digest, digest, fault)
}

func (k *comparing) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	return change{commit: func() { k.set(c) }, abort: doNothing}, nil
}
