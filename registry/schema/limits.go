package schema

// A step is the unit in which evaluation is bounded, about a microsecond at most:
// one schema applied to one value by the primary evaluator, half of that by the
// second. Long texts, lists and messages cost more than one.
const (
	maxSteps          = 600_000 // every value of the longest completion, once
	maxSecondarySteps = 400_000 // of the secondary evaluator: up to 200,000 values
	bytesPerStep      = 64
	// The number of names that one step pays for: looked up, sorted or copied.
	namesPerStep        = 16
	sortedPerStep       = 2
	mergedPerStep       = 8
	bytesWrittenPerStep = 16 // bytes of canonical forms and of pointers
	// maxValueDepth bounds recursion for callers without a parser in front.
	maxValueDepth = 1_000
)

// The rates at which the secondary evaluator works, measured; see BenchmarkWorst.
const (
	deepPerStep        = 512 // schemas among which it looks for one applied twice
	annotationsPerStep = 6   // notes made or copied
	requiredPerStep    = 256 // comparisons of a member's name with those required
	comparedPerStep    = 3   // plain values of an enum
	missingPerStep     = 4   // absent members that it lists
)
