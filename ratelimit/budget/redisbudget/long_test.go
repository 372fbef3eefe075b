package redisbudget_test

import "os"

// long reports whether the long form of a test is asked for (make budgets).
func long() bool { return os.Getenv("CALLGATE_BUDGETS") == "long" }
