package trace

import (
	"slices"
	"time"

	"github.com/callgate/callgate/refusal"
)

// maxStages is how many stages the pipeline has.
const maxStages = 9

// Times are how the checks of each stage went. A stage may have several checks, with
// those of others between them. It is a value: a copy has times of its own.
type Times struct {
	count int
	times [maxStages]StageTime
}

// StageTime is how long one stage took.
type StageTime struct {
	Stage refusal.Stage
	Took  time.Duration
}

// Stages lists the stages in their order.
func (s *Times) Stages() []StageTime { return s.times[:s.count] }

// Add adds what a check of a stage took.
func (s *Times) Add(stage refusal.Stage, took time.Duration) {
	for i := range s.Stages() {
		if s.times[i].Stage == stage {
			s.times[i].Took += took
			return
		}
	}
	s.times[s.count] = StageTime{stage, took}
	s.count++
}

// StageReport says of one stage that it was run, how it ended, and how long it
// took.
type StageReport struct {
	Stage  refusal.Stage `json:"stage"`
	OK     bool          `json:"ok"`
	Micros int64         `json:"micros"`
}

// Report lists the stages in their order; nothing is listed after the one that
// refused.
func (s *Times) Report(refused *refusal.Error) []StageReport {
	list := make([]StageReport, 0, s.count)
	for _, t := range s.Stages() {
		list = append(list, StageReport{t.Stage, true, t.Took.Microseconds()})
	}
	if refused != nil {
		if i := slices.IndexFunc(list, func(r StageReport) bool { return r.Stage == refused.Stage }); i >= 0 {
			list = list[:i+1]
		}
		list[len(list)-1].OK = false
	}
	return list
}
