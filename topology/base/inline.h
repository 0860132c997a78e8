// Functions that are put into their callers, where a call would cost more than what it does.
//
// Only where the compiler optimises: without, nobody wants speed, and who counts what runs would
// count every copy by itself.
#pragma once

#ifdef __OPTIMIZE__
#define TRANCHE_INLINE [[gnu::always_inline]] inline
#else
#define TRANCHE_INLINE inline
#endif
