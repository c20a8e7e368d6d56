/* SPDX-License-Identifier: Apache-2.0 */
#include "base/gradients.h"

double gradients_bytes(double parameters, unsigned number_bytes)
{
    return parameters * number_bytes;
}

double gradients_sent_bytes(double bytes, double members)
{
    return members > 1 ? 2 * (members - 1) / members * bytes : 0;
}
