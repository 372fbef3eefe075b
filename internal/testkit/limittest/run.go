package limittest

import "testing"

// Run runs the suite: the contract of ratelimit.Limiter.
func (bs Backends) Run(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"RetryAfterIsExact":                             bs.retryAfterIsExact,
		"RetryAfterIsExactToTheNanosecond":              bs.retryAfterIsExactToTheNanosecond,
		"CallerRetryAfterIsExact":                       bs.callerRetryAfterIsExact,
		"WhatIsNotStatedDoesNotApply":                   bs.whatIsNotStatedDoesNotApply,
		"WhoSharesABucket":                              bs.whoSharesABucket,
		"ANamedAgentHasTheDefaultsOfWhatItDoesNotState": bs.aNamedAgentHasTheDefaultsOfWhatItDoesNotState,
		"AllOrNone":                                     bs.allOrNone,
		"Concurrency":                                   bs.concurrency,
		"APaidCallTakesItsSlotAlone":                    bs.aPaidCallTakesItsSlotAlone,
		"ReleaseGivesNoTokenBack":                       bs.releaseGivesNoTokenBack,
		"MessagesTellTheModelToWaitAndNothingElse":      bs.messagesTellTheModelToWaitAndNothingElse,
		"FailsClosed":                                   bs.failsClosed,
		"TheClockStepsBack":                             bs.theClockStepsBack,
		"TheClockJumpsFar":                              bs.theClockJumpsFar,
		"FiguresChange":                                 bs.figuresChange,
		"BudgetsComeAndGo":                              bs.budgetsComeAndGo,
		"Parallel":                                      bs.parallel,
		"AgreesWithTheModel":                            bs.agreesWithTheModel,
		"Levels":                                        bs.levels,
	} {
		t.Run(name, test)
	}
}
