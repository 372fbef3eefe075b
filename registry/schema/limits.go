package schema

// A step is the unit in which judging is bounded, about a microsecond at most:
// one schema applied to one value by the first judge, half of that by the
// second. Long texts, lists and messages cost more than one.
const (
	maxSteps          = 600_000 // every value of the longest completion, once
	maxSecondarySteps = 400_000 // of the second judge: up to 200,000 values
	bytesPerStep      = 64
	// Of what is looked up, sorted or copied, as many as one step pays for.
	namesPerStep        = 16
	sortedPerStep       = 2
	mergedPerStep       = 8
	bytesWrittenPerStep = 16 // bytes of canonical forms and of pointers
	// maxValueDepth bounds recursion for callers without a parser in front.
	maxValueDepth = 1_000
)

// The rates at which the second judge works, measured; see BenchmarkWorst.
const (
	deepPerStep        = 512 // schemas among which it looks for one applied twice
	annotationsPerStep = 6   // notes made or copied
	requiredPerStep    = 256 // comparisons of a member's name with those required
	comparedPerStep    = 3   // plain values of an enum
	missingPerStep     = 4   // absent members that it lists
)
