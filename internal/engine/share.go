package engine

// every says how patient a priority is: while something of it waits, at most so many runs of higher priorities begin before
// one of it, beside those of lower priorities that have waited even longer.
var every = [priorities]uint8{PriorityVerify: 32, PriorityRetry: 16, PriorityTrigger: 8}

// shares counts, for each priority, how many runs of higher ones began while something of it waited. The highest priority
// goes first; what was passed over often enough is preferred once. So a wave of verification delays a change by a ninth of
// it at most, and is not delayed for ever. The zero value has passed over nobody.
type shares [priorities]uint8

// next is the priority whose turn it is among those that wait, at least one, and counts it as gone.
func (s *shares) next(waits func(Priority) bool) Priority {
	chosen, due := Priority(0), false
	for p := range Priority(priorities) { // the lowest first: among several that are due, it has waited for longest
		switch {
		case !waits(p):
			s[p] = 0
		case !due:
			chosen = p
			due = p != PriorityChange && s[p] >= every[p]
		}
	}
	for p := range chosen {
		if waits(p) {
			s[p]++
		}
	}
	s[chosen] = 0
	return chosen
}
