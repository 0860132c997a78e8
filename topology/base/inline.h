// Functions that are put into their callers, where a call would cost more than what it does.
//
// Where it is counted what runs (test/coverage.sh), every copy would be counted by itself.
#pragma once

#ifdef TRANCHE_COVERAGE
#define TRANCHE_INLINE inline
#else
#define TRANCHE_INLINE [[gnu::always_inline]] inline
#endif
