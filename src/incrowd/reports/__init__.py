"""What people look at: plots, and the HTML reports beside every release."""
